"""Parts of a mesh that have no path to each other even when nothing fails."""

from __future__ import annotations

import attrs

from router.whatif.model.mesh_model import Model


@attrs.frozen
class ConnectedComponents:
    """Parts into which the links join the routers."""

    parts: tuple[tuple[str, ...], ...]
    """Ids of the routers of each, sorted; the largest part first, of equal ones that with the least id."""

    @classmethod
    def of(cls, model: Model) -> ConnectedComponents:
        """Find the parts of a model in which nothing fails."""
        near: dict[str, list[str]] = {router.id: [] for router in model.routers}
        for link in model.links:
            near[link.a].append(link.b)
            near[link.b].append(link.a)
        found: list[tuple[str, ...]] = []
        seen: set[str] = set()
        for start in sorted(near):
            if start in seen:
                continue
            part = [start]
            seen.add(start)
            for router in part:  # grows meanwhile
                further = [each for each in dict.fromkeys(near[router]) if each not in seen]
                seen.update(further)
                part += further
            found.append(tuple(sorted(part)))
        return cls(tuple(sorted(found, key=lambda part: (-len(part), part))))

    @property
    def apart_pairs(self) -> int:
        """Ordered pairs of routers without a path."""
        routers = sum(map(len, self.parts))
        return routers * routers - sum(len(part) ** 2 for part in self.parts)
