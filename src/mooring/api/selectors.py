"""Label and node selectors: parsed once per object, then matched often.

Both kinds are made of the same `LabelRequirement`, whose `matches_value` answers for one value of
one label. The columns of the cache ask it once per distinct value instead of once per node.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from msgspec import Struct

from mooring.api._requirement_problems import (
    aggregate,
    int64,
    invalid,
    requirement_problems,
    unsupported_key,
    unsupported_operator,
)
from mooring.api.meta import LabelSelector
from mooring.api.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

NODE_NAME_FIELD: Final = "metadata.name"

_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS: Final = (*_LABEL_OPERATORS, "Gt", "Lt")


class SelectorError(ValueError):
    """An invalid selector."""

    @classmethod
    def of(cls, problems: Sequence[str]) -> "SelectorError":
        """Several problems as one error."""
        return cls(aggregate(problems))


class LabelRequirement(Struct, frozen=True, gc=False):
    """One test on one label, validated."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    bound: int = 0  # what Gt and Lt compare with

    def matches_value(self, value: str | None) -> bool:
        """Whether this value of the label passes; `None` means there is no such label."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else int64(value)
        if number is None:
            return False
        return number > self.bound if self.operator == "Gt" else number < self.bound

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.matches_value(labels.get(self.key))

    def __str__(self) -> str:
        listed = ",".join(sorted(self.values))
        is_one = len(self.values) == 1
        match self.operator:
            case "In":
                return f"{self.key}={listed}" if is_one else f"{self.key} in ({listed})"
            case "NotIn":
                return f"{self.key}!={listed}" if is_one else f"{self.key} notin ({listed})"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
        return f"{self.key} {'>' if self.operator == 'Gt' else '<'} {self.bound}"


class Selector(Struct, frozen=True, gc=False):
    """Requirements that must all hold, or nothing at all when `matches_nothing` is set."""

    NOTHING: ClassVar["Selector"]
    EVERYTHING: ClassVar["Selector"]

    requirements: tuple[LabelRequirement, ...] = ()
    matches_nothing: bool = False

    @classmethod
    def from_label_selector(cls, selector: LabelSelector | None) -> "Selector":
        """As metav1.LabelSelectorAsSelector: `None` matches nothing, an empty one everything."""
        if selector is None:
            return cls.NOTHING
        exact = [_requirement(k, "In", (v,)) for k, v in sorted(selector.match_labels.items())]
        tests = [
            _requirement(test.key, test.operator, test.values, _LABEL_OPERATORS)
            for test in selector.match_expressions
        ]
        return cls((*exact, *tests)) if exact or tests else cls.EVERYTHING

    @classmethod
    def from_map(cls, labels: Mapping[str, str]) -> "Selector":
        """Labels that must all be there with these values; unchecked, as labels.SelectorFromSet."""
        exact = (LabelRequirement(k, "In", frozenset((v,))) for k, v in sorted(labels.items()))
        return cls(tuple(exact))

    @property
    def is_empty(self) -> bool:
        """True when every object matches, because nothing is required of it."""
        return not self.requirements and not self.matches_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.matches_nothing:
            return False
        for requirement in self.requirements:
            if not requirement.matches_value(labels.get(requirement.key)):
                return False
        return True

    def requiring(self, more: Iterable[LabelRequirement]) -> "Selector":
        """This selector with further requirements; one that matches nothing stays so."""
        return self if self.matches_nothing else Selector((*self.requirements, *more))

    def __str__(self) -> str:
        return "<none>" if self.matches_nothing else ",".join(map(str, self.requirements))


Selector.NOTHING = Selector(matches_nothing=True)
Selector.EVERYTHING = Selector()


class NodeTerm(Struct, frozen=True, gc=False):
    """One node selector term: label requirements and node names, all of which must hold.

    A term that could not be parsed carries its `errors` and matches no node; nor does an empty one.
    """

    requirements: tuple[LabelRequirement, ...] = ()
    names_in: tuple[str, ...] = ()  # the name must equal each of them
    names_not_in: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when the term tests nothing, and so matches nothing."""
        return not (self.requirements or self.names_in or self.names_not_in or self.errors)

    def matches_name(self, name: str) -> bool:
        """Whether the field part of the term holds for a node of this name."""
        return all(name == n for n in self.names_in) and name not in self.names_not_in

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if self.errors or self.is_empty or not self.matches_name(name):
            return False
        return all(r.matches_value(labels.get(r.key)) for r in self.requirements)


class NodeMatcher(Struct, frozen=True, gc=False):
    """Terms of which one must match; without terms no node does."""

    terms: tuple[NodeTerm, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """What was wrong with the terms that could not be parsed."""
        return tuple(problem for term in self.terms for problem in term.errors)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)


def compile_node_selector(selector: NodeSelector) -> NodeMatcher:
    """Parse every term; broken terms are kept, with their error, and never match."""
    return NodeMatcher(
        tuple(
            compile_term(term, f"nodeSelectorTerms[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
        )
    )


def compile_term(term: NodeSelectorTerm, path: str = "") -> NodeTerm:
    """Parse one term, as nodeaffinity.newNodeSelectorTerm; problems end up in `errors`."""
    requirements: list[LabelRequirement] = []
    names_in: list[str] = []
    names_not_in: list[str] = []
    problems: list[str] = []
    for index, test in enumerate(term.match_expressions):
        place = f"{path}.matchExpressions[{index}]".lstrip(".")
        if test.operator not in _NODE_OPERATORS:
            problems.append(unsupported_operator(test.operator, _NODE_OPERATORS, place))
            continue
        found = list(requirement_problems(test.key, test.operator, test.values, place))
        problems += found
        if not found:
            requirements.append(_built(test.key, test.operator, test.values))
    for index, test in enumerate(term.match_fields):
        place = f"{path}.matchFields[{index}]".lstrip(".")
        problem = _field_problem(test, place)
        if problem is not None:
            problems.append(problem)
        else:
            (names_in if test.operator == "In" else names_not_in).append(test.values[0])
    if problems:
        return NodeTerm(errors=tuple(problems))
    return NodeTerm(tuple(requirements), tuple(names_in), tuple(names_not_in))


def parse_label_query(text: str) -> Selector:
    """Read the notation of `kubectl -l`: `a=b,c!=d,e in (x,y),f notin (z),g,!h`."""
    requirements: list[LabelRequirement] = []
    position = 0
    if not text.strip():
        return Selector.EVERYTHING
    while True:
        part = _QUERY_PART.match(text, position)
        if part is None:
            raise SelectorError(
                f"label query {text!r}: expected key, !key, key=value, key!=value, key in (a,b) "
                f"or key notin (a,b) at {text[position:].strip()!r}"
            )
        requirements.append(_query_requirement(part))
        position = part.end()
        if position == len(text):
            return Selector(tuple(requirements))
        position += 1  # the comma


_QUERY_PART: Final = re.compile(
    r"""\s*(?:
        !\s*(?P<absent>[^\s=!,()<>]+)
      | (?P<key>[^\s=!,()<>]+)(?:
            \s*(?P<compare>==|=|!=)\s*(?P<value>[^\s=!,()<>]*)
          | \s*(?P<order>[<>])\s*(?P<bound>[^\s=!,()<>]+)
          | \s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\)
        )?
    )\s*(?=,|$)""",
    re.VERBOSE,
)


def _query_requirement(part: re.Match[str]) -> LabelRequirement:
    if part["absent"]:
        return _requirement(part["absent"], "DoesNotExist", ())
    if part["compare"]:
        return _requirement(
            part["key"], "NotIn" if part["compare"] == "!=" else "In", (part["value"],)
        )
    if part["order"]:
        return _requirement(part["key"], "Gt" if part["order"] == ">" else "Lt", (part["bound"],))
    if part["set"]:
        values = tuple(value.strip() for value in part["values"].split(","))
        return _requirement(part["key"], "In" if part["set"] == "in" else "NotIn", values)
    return _requirement(part["key"], "Exists", ())


def _requirement(
    key: str, operator: str, values: tuple[str, ...], operators: tuple[str, ...] = _NODE_OPERATORS
) -> LabelRequirement:
    if operator not in operators:
        raise SelectorError(f'"{operator}" is not a valid label selector operator')
    problems = list(requirement_problems(key, operator, values))
    if problems:
        raise SelectorError.of(problems)
    return _built(key, operator, values)


def _built(key: str, operator: str, values: tuple[str, ...]) -> LabelRequirement:
    if operator in ("Gt", "Lt"):
        return LabelRequirement(key, operator, bound=int64(values[0]) or 0)
    return LabelRequirement(key, operator, frozenset(values))


def _field_problem(test: NodeSelectorRequirement, path: str) -> str | None:
    if test.operator not in ("In", "NotIn"):
        return unsupported_operator(test.operator, ("In", "NotIn"), path)
    if len(test.values) != 1:
        return invalid(f"{path}.values", test.values, "must have one element")
    if test.key != NODE_NAME_FIELD:
        # The API server lets nothing else in; kube-scheduler itself would not look at the key.
        return unsupported_key(test.key, path)
    return None
