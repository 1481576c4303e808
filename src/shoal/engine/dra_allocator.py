"""Allocates devices to the claims of pods: verdicts per node, cached until the node's devices change.

Pods with the same claims ask again and again, and a decision changes one node: the answer for every other node is
looked up. What lies under an answer is counted by two numbers, one per row and one for all that reaches several rows
(devices of a network, the sets themselves); an answer is valid while both are unchanged.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.api.slices import Reach
from shoal.engine.device_demand import NOTHING, DeviceGrant
from shoal.engine.dra.devices import SliceFacts
from shoal.engine.dra.pools import Pools
from shoal.engine.dra.requests import ClaimAsk, ClaimFacts, ClaimGrant, ClaimRef, Picks
from shoal.engine.dra.search import Finding, find
from shoal.engine.dra.shared import MOST_CONSUMERS, SharedClaim, SharedClaims
from shoal.engine.dra.trial import Stock
from shoal.engine.dra.usage import Usage
from shoal.engine.labels import Labels

Refs = tuple[ClaimRef, ...]

_MOST_CONTENTS = 1024
"""Different claims whose answers are kept."""

_MOST_ANSWERS = 1_000_000
"""Answers kept over all claims (250 to 550 bytes each): claims beyond that give way, the longest unused first."""

Contents = tuple[ClaimAsk, ...]

_Stamp = tuple[int, int]
_Answers = dict[int, tuple[_Stamp, Finding]]
"""By row."""


class Allocator:
    """The devices of one cluster and the claims on them."""

    def __init__(self, names: list[str], labels: Labels, *, most_answers: int = _MOST_ANSWERS) -> None:
        self._names = names
        self._most_answers = most_answers
        self._labels = labels
        self.pools = Pools(names, labels)
        self.usage = Usage(self.pools)
        self.shared = SharedClaims(self.usage)
        self.sets: dict[str, frozenset[str]] = {}
        """The devices that asks mean by a name."""
        self._wide = 0
        self._of_row: dict[int, int] = {}
        self._answers: dict[Contents, _Answers] = {}
        """The claims longest not asked about come first."""
        self._kept = 0
        """Answers in all of them."""

    @property
    def version(self) -> int:
        """Grows with whatever may change an answer on rows that are not in the change log."""
        return self._wide + self.shared.version

    def epoch(self, refs: Refs) -> int:
        """As `version`, for one ask."""
        return self.version if any(ref.shared for ref in refs) else self._wide

    # -- facts -----------------------------------------------------------------------------------------------

    def put_slice(self, piece: SliceFacts) -> None:
        if self.pools.put(piece):
            self._wide += 1

    def drop_slice(self, name: str) -> None:
        if self.pools.drop(name):
            self._wide += 1

    def put_set(self, name: str, devices: frozenset[str]) -> None:
        if self.sets.get(name) != devices:
            self.sets[name] = devices
            self._wide += 1

    def put_claim(self, facts: ClaimFacts) -> None:
        if self.shared.put(facts):
            self._wide += 1

    def drop_claim(self, key: str) -> None:
        if self.shared.drop(key):
            self._wide += 1

    def node_changed(self, row: int) -> None:
        """A node took the row, or carries other labels: what it can use may be something else."""
        self._of_row[row] = self._of_row.get(row, 0) + 1

    # -- pods ------------------------------------------------------------------------------------------------

    def take(self, pod: str, row: int, grants: tuple[ClaimGrant, ...]) -> None:
        """A pod on a row holds these."""
        for grant in grants:
            if grant.shared:
                self.shared.take(pod, grant)
            else:
                self.usage.take(grant.picks)
            self._touch(row, grant.picks)

    def give(self, pod: str, row: int, grants: tuple[ClaimGrant, ...]) -> None:
        """Exactly undo `take`."""
        for grant in reversed(grants):
            if grant.shared:
                self.shared.give(pod, grant)
            else:
                self.usage.give(grant.picks)
            self._touch(row, grant.picks)

    def release_reservations(self, pod: str) -> None:
        """The pod is seen on a node, or is gone: reservations in its name are settled."""
        before = self.shared.version
        self.shared.release_reservations(pod)
        if self.shared.version != before:
            self._wide += 1

    # -- answers ---------------------------------------------------------------------------------------------

    def blocked(self, refs: Refs) -> str:
        """Why the claims can be allocated nowhere, whatever is free; empty if there is no such reason."""
        for ref in refs:
            if ref.trouble:
                return ref.trouble
            if not ref.shared:
                continue
            claim = self.shared.find(ref.shared)
            if claim is None or claim.facts is None:
                return f'resourceclaim "{ref.shared.rpartition("/")[2]}" not found'
            if claim.facts.trouble:
                return claim.facts.trouble
            if claim.consumers >= MOST_CONSUMERS:
                return f'resourceclaim "{ref.shared}" is reserved for {MOST_CONSUMERS} pods, the most there may be'
        return ""

    def reached(self, refs: Refs, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """From which rows the claims that are allocated already can be used."""
        verdicts = np.ones(len(rows), np.bool_)
        for ref in refs:
            claim = self.shared.find(ref.shared) if ref.shared else None
            if claim is not None and claim.uses:
                for picks in claim.uses:
                    verdicts &= self._reaching(claim, picks, rows)
        return verdicts

    def served(self, refs: Refs, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """On which rows the claims that are not allocated yet can be."""
        open_ = self.unallocated(refs)
        if not open_:
            return np.ones(len(rows), np.bool_)
        contents = tuple(content for _, content in open_)
        answers = self._answers_to(contents)
        verdicts = (self._find(answers, contents, row).picks is not None for row in rows.tolist())
        return np.fromiter(verdicts, np.bool_, len(rows))

    def finding(self, refs: Refs, row: int) -> Finding:
        """The devices of one row for the claims that are not allocated yet."""
        contents = tuple(content for _, content in self.unallocated(refs))
        return self._find(self._answers_to(contents), contents, row)

    def unallocated(self, refs: Refs) -> list[tuple[ClaimRef, ClaimAsk]]:
        """The claims that still want devices, and what they ask for."""
        wanting = []
        for ref in refs:
            if ref.own is not None:
                wanting.append((ref, ref.own))
            claim = self.shared.find(ref.shared) if ref.shared else None
            if claim is not None and claim.facts is not None and not claim.uses:
                wanting.append((ref, claim.facts.ask))
        return wanting

    def with_claims(self, grant: DeviceGrant | None, refs: Refs, row: int) -> DeviceGrant:
        """The grant of a pod's devices together with what its claims get; of a pod that does not fit, what it can."""
        open_ = self.unallocated(refs)
        found = self.finding(refs, row).picks if open_ else ()
        given: dict[ClaimRef, Picks] = {}
        if found is not None:
            given = {ref: picks for (ref, _), picks in zip(open_, found, strict=True)}
        grants = []
        for ref in refs:
            claim = self.shared.find(ref.shared) if ref.shared else None
            allocation = claim.allocation if claim is not None else None
            grants.append(ClaimGrant(ref.name, ref.shared, allocation or given.get(ref, ())))
        return msgspec.structs.replace(grant or NOTHING, claims=tuple(grants))

    def stock(self, row: int) -> Stock:
        """What the node in a row has for claims."""
        return Stock(self.pools.on(row), self.usage, self.sets, not self.pools.is_unfinished(row))

    def _answers_to(self, contents: Contents) -> _Answers:
        """What is kept about these claims, which are the last now to give way."""
        answers = self._answers.pop(contents, None)
        if answers is not None:
            self._answers[contents] = answers
            return answers
        answers = self._answers[contents] = {}
        self._free_capacity()
        return answers

    def _find(self, answers: _Answers, contents: Contents, row: int) -> Finding:
        stamp = (self._wide, self._of_row.get(row, 0))
        known = answers.get(row)
        if known is None:
            known = answers[row] = stamp, find(contents, self.stock(row))
            self._kept += 1
            self._free_capacity()
        elif known[0] != stamp:
            known = answers[row] = stamp, find(contents, self.stock(row))
        return known[1]

    def _free_capacity(self) -> None:
        """The claims longest not asked about give way to those at hand."""
        answers = self._answers
        while len(answers) > 1 and (len(answers) > _MOST_CONTENTS or self._kept > self._most_answers):
            self._kept -= len(answers.pop(next(iter(answers))))

    def _reaching(self, claim: SharedClaim, picks: Picks, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """From which rows an allocation can be used: as it says itself, else as its devices say."""
        facts, names = claim.facts, self._names
        if facts is not None and facts.reach is not None and picks == facts.allocation:
            reaches = [Reach(node_selector=facts.reach)]
        else:
            devices = [device for pick in picks if (device := self.pools.find(pick.device)) is not None]
            reaches = list(dict.fromkeys(device.facts.reach for device in devices))
        verdicts = np.ones(len(rows), np.bool_)
        for reach in reaches:
            if reach.node_name:
                # The common case by far, and asked of all nodes whenever a claim is allocated.
                each = [names[row] == reach.node_name for row in rows.tolist()]
            else:
                each = [self.pools.reaches(reach, row) for row in rows.tolist()]
            verdicts &= np.array(each, np.bool_)
        return verdicts

    def _touch(self, row: int, picks: Picks) -> None:
        """The answers of one row are out of date, or of all where a device is not this node's alone."""
        self._of_row[row] = self._of_row.get(row, 0) + 1
        name = self._names[row]
        for pick in picks:
            device = self.pools.find(pick.device)
            if device is not None and device.facts.reach.node_name != name:
                self._wide += 1
                return
