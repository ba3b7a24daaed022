"""The table of extension points, from which the other rooms derive theirs."""

import pytest

import mooring.framework as fw
from mooring import config as cfg
from mooring.framework.plugin import CAN_REFUSE, IN_DECISIONS, POINTS

NOT_SERVED = {"placementGenerate", "placementScore"}


def test_every_point_of_a_configuration_file_has_a_class_in_the_order_of_the_file() -> None:
    assert list(POINTS) == [point for point in cfg.POINTS if point not in NOT_SERVED]


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_a_plugin_author_can_import_the_class_of_every_point(point: type) -> None:
    assert getattr(fw, point.__name__) is point


def test_pods_wait_for_an_event_after_refusals_up_to_permit() -> None:
    refusing = (fw.PreEnqueue, fw.PreFilter, fw.Filter, fw.PostFilter, fw.Reserve, fw.Permit)
    assert refusing == CAN_REFUSE


def test_four_points_decide() -> None:
    assert (fw.PreFilter, fw.Filter, fw.PreScore, fw.Score) == IN_DECISIONS
