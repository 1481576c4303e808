"""One control plane, put together: storage, state, catalog, operations, and the request_handler in front of them.

Guarantees: opening an empty one writes what Kubernetes has from the start; opening a folder that has been used goes on
where it stopped. Nothing is served before that is done.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from time import monotonic, time

import msgspec

from shoal.client import certificates
from shoal.client.clock import Clock, WallClock
from shoal.embedded.apiserver.admission.chain import AdmissionChain as BuiltinPlugins
from shoal.embedded.apiserver.admission.chain import builtin_plugins
from shoal.embedded.apiserver.admission.plugin import AdmissionPlugin
from shoal.embedded.apiserver.aggregated.following import FollowedServices
from shoal.embedded.apiserver.aggregated.front_proxy import FrontProxy
from shoal.embedded.apiserver.aggregated.local import local_services
from shoal.embedded.apiserver.aggregated.proxy import Proxy
from shoal.embedded.apiserver.aggregated.reading import AggregatedReader
from shoal.embedded.apiserver.aggregated.server import Servers
from shoal.embedded.apiserver.bootstrap.client_trust import client_trust
from shoal.embedded.apiserver.bootstrap.namespaces import namespace_defaults
from shoal.embedded.apiserver.bootstrap.objects import objects as first_objects
from shoal.embedded.apiserver.bootstrap.own_service import own_endpoints
from shoal.embedded.apiserver.builtin import builtin_resources
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.catalog import ResourceCatalog
from shoal.embedded.apiserver.crds.definition_strategy import DEFINITIONS
from shoal.embedded.apiserver.discovery.documents import DiscoveryDocuments
from shoal.embedded.apiserver.discovery.version import version_document
from shoal.embedded.apiserver.dynamic.admission_context import ConfiguredAdmissionContext
from shoal.embedded.apiserver.dynamic.converting import converting
from shoal.embedded.apiserver.dynamic.endpoints import Endpoints
from shoal.embedded.apiserver.dynamic.following import FollowedConfigurations
from shoal.embedded.apiserver.dynamic.gate import DynamicAdmission
from shoal.embedded.apiserver.dynamic.posting import Posting
from shoal.embedded.apiserver.flowcontrol.control import FlowControl
from shoal.embedded.apiserver.kinds.table import STRATEGIES
from shoal.embedded.apiserver.openapi.documents import Documents as OpenApi
from shoal.embedded.apiserver.resource import Home, Obj, Ref
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.creating import creation
from shoal.embedded.apiserver.rest.quota_commits import QuotaCommitQueue
from shoal.embedded.apiserver.schema.kubernetes import published
from shoal.embedded.apiserver.security.authenticate import Authenticator
from shoal.embedded.apiserver.security.authority import Authority, open_authority
from shoal.embedded.apiserver.security.authorize import AllowRecognised, Authorizer
from shoal.embedded.apiserver.security.escalation import EscalationCheck
from shoal.embedded.apiserver.security.join_access import JoinAccess, JoinAuthenticator
from shoal.embedded.apiserver.security.join_tokens import JoinTokens
from shoal.embedded.apiserver.security.joined_nodes import JoinedNodes
from shoal.embedded.apiserver.security.node_authorizer import NodeAuthorizer
from shoal.embedded.apiserver.security.node_pods import NodePods
from shoal.embedded.apiserver.security.node_restriction import NodeRestriction
from shoal.embedded.apiserver.security.rbac import Rbac
from shoal.embedded.apiserver.security.service_accounts import TokenSigner
from shoal.embedded.apiserver.security.signer_rights import SignerRights
from shoal.embedded.apiserver.server.custom_resources import CRDS, CustomResources
from shoal.embedded.apiserver.server.document_routes import discovery_makers, fixed, issuer_makers, openapi_maker
from shoal.embedded.apiserver.server.documents import Documents
from shoal.embedded.apiserver.server.gathered_roles import GatheredRoles
from shoal.embedded.apiserver.server.health import ServerHealth
from shoal.embedded.apiserver.server.housekeeping import Housekeeping
from shoal.embedded.apiserver.server.join_routes import JoinRoutes
from shoal.embedded.apiserver.server.metrics import Metrics
from shoal.embedded.apiserver.server.quota_counts import QuotaCounts
from shoal.embedded.apiserver.server.request_handler import RequestHandler
from shoal.embedded.apiserver.server.resources import ResourceHandlers
from shoal.embedded.apiserver.server.scales import Scales
from shoal.embedded.apiserver.server.streaming import OpenStreams
from shoal.embedded.apiserver.server.subresource_bodies import SubresourceBodies
from shoal.embedded.apiserver.server.upgrades import Upgrades
from shoal.embedded.apiserver.server.used_tokens import UsedTokens
from shoal.embedded.apiserver.server.virtual import Virtual, virtual_resources
from shoal.embedded.apiserver.server_faults.fault_routes import FaultRoutes
from shoal.embedded.apiserver.server_faults.faults import Faults
from shoal.embedded.apiserver.settings import Settings
from shoal.embedded.apiserver.state.record import Write
from shoal.embedded.apiserver.state.state import State
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.embedded.apiserver.storage.port import Storage
from shoal.embedded.apiserver.streams.joined_kubelets import JoinedKubelets
from shoal.embedded.apiserver.streams.kubelet_routes import conversations
from shoal.embedded.apiserver.streams.kubelets import CLIENT as KUBELET_CLIENT
from shoal.embedded.apiserver.streams.kubelets import Kubelets
from shoal.embedded.apiserver.streams.node_connections import NodeConnections
from shoal.embedded.apiserver.streams.terminal import CannedTerminal
from shoal.units.errors import UserError, Where

_NAMESPACES = Home("", "namespaces")
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Those Kubernetes ends generated names with: no vowels, so that no words come out."""


class InsideAccess(msgspec.Struct, frozen=True):
    """What callers in the process use beside the operations on objects."""

    virtual: Mapping[tuple[str, str, str], Virtual]
    """What is posted and not stored, by group, plural and subresource."""
    scales: Scales
    aggregated: AggregatedReader


class ControlPlane:
    """A control plane that is open. `request_handler` answers requests; `close` ends it without losing what was
    acknowledged."""

    def __init__(
        self,
        context: ServerContext,
        clock: Clock,
        request_handler: RequestHandler,
        inside: InsideAccess,
        authority: Authority,
        faults: Faults,
        joined: JoinedKubelets,
        followers: tuple[object, ...],
        closers: tuple[Callable[[], Awaitable[None]], ...],
    ) -> None:
        self.context = context
        self.clock = clock
        self.request_handler = request_handler
        self.inside = inside
        self.authority = authority
        self.faults = faults
        """The faults on request; callers inside the process call `before` too."""
        self.joined = joined
        """The kubelets of machines that joined."""
        self._followers = followers
        """Told of commits for as long as there are any; kept here, so that they are not collected."""
        self._closers = closers

    async def close(self) -> None:
        for close in self._closers:
            await close()
        self.context.large.close()
        await self.context.state.close()


class _Checked:
    """The built-in plugins, and the checks that ask the authorizer."""

    def __init__(self, plugins: BuiltinPlugins, authorizer: Authorizer) -> None:
        self.mutate = plugins.mutate
        self._plugins = plugins
        self._escalation = EscalationCheck(authorizer)
        self._signers = SignerRights(authorizer)

    def validate(self, admission: AdmissionAttributes) -> None:
        self._plugins.validate(admission)
        self._signers.validate(admission)
        self._escalation.validate(admission)


async def open_plane(
    settings: Settings, address: tuple[str, int], storage: Storage | None = None, clock: Clock | None = None
) -> ControlPlane:
    """`address` is where the server listens; `clock` tells the time that objects are stamped with."""
    clock = clock or WallClock()
    keys = settings.keys
    today = datetime.now(UTC)  # noqa: TID251 - certificates want the date
    authority = open_authority(keys, today, (settings.host,))
    shapes = published(settings.kube_version)
    catalog = ResourceCatalog(builtin_resources(shapes, {**STRATEGIES, CRDS: DEFINITIONS}))
    state = await State.open(
        storage or _storage(settings),
        describe=_GetAttributes(catalog),
        clock=monotonic,
        history_count=settings.history_events,
        history_age_s=settings.history_s,
    )
    authorizer: Authorizer = AllowRecognised()
    restriction: AdmissionPlugin | None = None
    if settings.authorization == "rbac":
        pods = NodePods(state)
        authorizer = NodeAuthorizer(Rbac(state.reader), state.reader, pods)
        if not settings.joining_fault:
            authorizer = JoinAccess(authorizer, pods.has_pod_in)
        restriction = NodeRestriction(state.reader, authorizer.allows)
    draw = random.Random()

    def suffix() -> str:
        return "".join(draw.choices(_LETTERS, k=5))

    builtin = builtin_plugins(state.reader, suffix, restriction)
    plugins = _Checked(builtin, authorizer)

    def default_objects(ref: Ref) -> Sequence[tuple[Ref, Obj]]:
        if ref.home != _NAMESPACES:
            return ()
        return list(namespace_defaults(ref.name, authority.root_certificate))

    endpoints = Endpoints(state.reader)
    posting = Posting(endpoints)
    convert = converting(posting, _new_uid)
    around = ConfiguredAdmissionContext(catalog, state.reader, posting, convert, authorizer.allows, _new_uid)
    dynamic = DynamicAdmission(around, plugins.mutate)
    context = ServerContext(
        state=state,
        catalog=catalog,
        plugins=plugins,
        dynamic=dynamic,
        quotas=builtin.quota,
        quota_commits=QuotaCommitQueue(),
        clock=clock,
        convert=convert,
        new_uid=_new_uid,
        new_suffix=suffix,
        default_objects=default_objects,
        authorizer=authorizer,
    )
    try:
        await _bootstrap(context, authority, address)
    except ApiError as error:
        fault = state.health()
        if not fault:
            raise
        where = Where(str(settings.state_dir or ""))
        raise UserError(f"the first objects cannot be stored: {fault}", where=where, fix="make room there") from error
    custom = CustomResources(context)
    counts, roles = QuotaCounts(context), GatheredRoles(context)
    used_tokens = UsedTokens(context)
    signer = TokenSigner(authority.signing_key, used_tokens.used)
    joined = JoinedNodes(keys)
    connections = NodeConnections(lambda node: joined.get(node) is not None)
    accepts_machines = keys is not None and not settings.joining_fault
    joining = JoinAuthenticator(JoinTokens(keys)) if keys is not None and accepts_machines else None
    authenticator = Authenticator(authority, signer, state.reader, joined, joining)
    streams = OpenStreams()
    faults = Faults(state.expire, draw.random)
    flow_control = FlowControl(state.reader)
    metrics = Metrics(time(), streams, lambda: [*faults.metrics(), *flow_control.metrics()])
    health = ServerHealth({"ping": lambda: "", "log": lambda: "", "etcd": state.health})
    discovery = DiscoveryDocuments(catalog, server_address=f"{address[0]}:{address[1]}")
    openapi = openapi_maker(OpenApi(catalog, settings.kube_version))
    issuer = issuer_makers(authority, f"https://{address[0]}:{address[1]}")
    makers = {
        **discovery_makers(discovery),
        **issuer,
        "openapi": openapi,
        "version": fixed("/version", version_document(settings.kube_version)),
    }
    servers = Servers(endpoints, posting, FrontProxy(authority.front_proxy))
    services = FollowedServices(context, servers, discovery)
    documents = Documents(state, catalog, health, metrics, makers, Proxy(services, servers))
    kubelets = Kubelets(authority.client(KUBELET_CLIENT, (), today))
    virtual = virtual_resources(context, authenticator, authorizer, signer, restriction)
    spoken = SubresourceBodies(shapes.of)
    resources = ResourceHandlers(context, virtual, spoken, streams)
    request_handler = RequestHandler(
        context,
        authenticator,
        authorizer,
        documents,
        resources,
        Upgrades(
            context,
            conversations(state.reader, authorizer, CannedTerminal(), kubelets, connections),
            certificates.hosts_of(authority.server),
        ),
        metrics,
        FaultRoutes(faults),
        flow_control,
        JoinRoutes(authority, joined, state.reader, connections) if accepts_machines else None,
    )
    services.start()
    housekeeping = Housekeeping(context)
    housekeeping.start()
    configurations = FollowedConfigurations(context, dynamic)
    followers = (counts, configurations)
    closers = (
        housekeeping.stop,
        used_tokens.close,
        custom.close,
        roles.close,
        configurations.close,
        services.close,
        posting.close,
    )
    return ControlPlane(
        context,
        clock,
        request_handler,
        InsideAccess(virtual, Scales(context, spoken), AggregatedReader(services, servers)),
        authority,
        faults,
        JoinedKubelets(connections, kubelets),
        followers,
        (*closers, kubelets.close, connections.close),
    )


class _GetAttributes:
    """Labels and selectable fields of records that were read at the start."""

    def __init__(self, catalog: ResourceCatalog) -> None:
        self._catalog = catalog

    def __call__(self, ref: Ref, obj: Obj) -> tuple[dict[str, str], dict[str, str]]:
        stored = self._catalog.stored(ref.home)
        fields = dict(stored.strategy.fields(obj)) if stored is not None else {}
        return obj["metadata"].get("labels") or {}, fields


def _storage(settings: Settings) -> Storage:
    if settings.state_dir is None:
        return MemoryStorage()
    from shoal.embedded.apiserver.storage.sqlite import SqliteStorage

    return SqliteStorage(settings.state_dir, accept_loss=settings.accepts_loss)


def _new_uid() -> str:
    return str(uuid.uuid4())


async def _bootstrap(context: ServerContext, authority: Authority, address: tuple[str, int]) -> None:
    """Write what is there from the start, where it is not there yet."""
    now = context.clock.text()
    trust = client_trust(authority)
    seeds = [*first_objects(now, authority.root_certificate, *address), trust, *local_services(context.catalog, now)]
    writes = [creation(context, ref, obj) for ref, obj in seeds if context.state.get(ref) is None]
    if writes:
        await context.state.commit(writes)
    moved = [_again(context, ref, obj) for ref, obj in (trust, *own_endpoints(*address))]
    await context.state.commit([write for write in moved if write is not None])


def _again(context: ServerContext, ref: Ref, obj: Obj) -> Write | None:
    """What says of the server itself how it is now: its port and its authorities may be others than last time."""
    record = context.state.get(ref)
    if record is None:
        return None
    present = record.obj()
    wanted = present | {key: value for key, value in obj.items() if key != "metadata"}
    if wanted == present:
        return None
    return Write(ref, wanted, record, record.uid, record.labels, record.fields)
