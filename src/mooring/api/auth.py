"""Authentication and authorisation reviews: created by POST, answered in `status`.

The client uses `SelfSubjectRulesReview` and `SelfSubjectAccessReview` for its own permissions; the
HTTPS endpoints use the other two for their callers.
"""

from typing import ClassVar, Final

from mooring.api.frozen import FrozenDict
from mooring.api.meta import Object, Value


class Extra(FrozenDict[str, tuple[str, ...]]):
    """Additional user information, passed from authenticators to authorizers."""

    __slots__ = ()


NO_EXTRA: Final = Extra()


class ResourceAttributes(Value, frozen=True, kw_only=True):
    """A request for a resource; an empty namespace or name means all of them."""

    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


class NonResourceAttributes(Value, frozen=True, kw_only=True):
    """A request for a path such as `/metrics`."""

    path: str = ""
    verb: str = ""


class SubjectAccessReviewStatus(Value, frozen=True, kw_only=True):
    """The answer; neither allowed nor denied means that no authorizer had an opinion."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class SelfSubjectAccessReviewSpec(Value, frozen=True, kw_only=True):
    """The request to review: one of the two."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SelfSubjectAccessReview(Object, frozen=True, kw_only=True):
    """Whether the caller may do something."""

    API_VERSION: ClassVar[str] = "authorization.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    spec: SelfSubjectAccessReviewSpec = SelfSubjectAccessReviewSpec()
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()


class ResourceRule(Value, frozen=True, kw_only=True):
    """What is allowed, with `*` for everything; without names, on all objects."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()


class SelfSubjectRulesReviewSpec(Value, frozen=True, kw_only=True):
    """The namespace in which the rules apply."""

    namespace: str = ""


class SubjectRulesReviewStatus(Value, frozen=True, kw_only=True):
    """The rules; incomplete if an authorizer cannot list them."""

    resource_rules: tuple[ResourceRule, ...] = ()
    incomplete: bool = False


class SelfSubjectRulesReview(Object, frozen=True, kw_only=True):
    """What the caller may do in a namespace."""

    API_VERSION: ClassVar[str] = "authorization.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    spec: SelfSubjectRulesReviewSpec = SelfSubjectRulesReviewSpec()
    status: SubjectRulesReviewStatus = SubjectRulesReviewStatus()


class SubjectAccessReviewSpec(SelfSubjectAccessReviewSpec, frozen=True, kw_only=True):
    """The request to review, and its user."""

    user: str = ""
    groups: tuple[str, ...] = ()
    extra: Extra = NO_EXTRA
    uid: str = ""


class SubjectAccessReview(Object, frozen=True, kw_only=True):
    """Whether a user may do something."""

    API_VERSION: ClassVar[str] = "authorization.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    spec: SubjectAccessReviewSpec = SubjectAccessReviewSpec()
    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()


class UserInfo(Value, frozen=True, kw_only=True):
    """A user, as an authenticator knows it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Extra = NO_EXTRA


class TokenReviewSpec(Value, frozen=True, kw_only=True):
    """A bearer token, and its intended audiences."""

    token: str = ""
    audiences: tuple[str, ...] = ()


class TokenReviewStatus(Value, frozen=True, kw_only=True):
    """The user of the token, if it is valid."""

    authenticated: bool = False
    user: UserInfo = UserInfo()
    audiences: tuple[str, ...] = ()
    error: str = ""


class TokenReview(Object, frozen=True, kw_only=True):
    """Authenticates a bearer token."""

    API_VERSION: ClassVar[str] = "authentication.k8s.io/v1"
    NAMESPACED: ClassVar[bool] = False

    spec: TokenReviewSpec = TokenReviewSpec()
    status: TokenReviewStatus = TokenReviewStatus()
