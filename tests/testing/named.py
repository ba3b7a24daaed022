"""Plugins of tests that are named as their classes."""

from mooring.framework.plugin import Base


class Named(Base):
    """A plugin whose name is that of its class; so are those of its subclasses."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = cls.__name__
