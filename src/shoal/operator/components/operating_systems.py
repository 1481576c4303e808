"""Names the operating system of a node as the tags of NVIDIA's driver images do: `ubuntu22.04`, `rhel9.4`.

The labels of node feature discovery come first. Without them the name that the kubelet reports is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

OS_ID = "feature.node.kubernetes.io/system-os_release.ID"
OS_VERSION = "feature.node.kubernetes.io/system-os_release.VERSION_ID"
_NAMES = {
    "Ubuntu": "ubuntu",
    "Red Hat Enterprise Linux CoreOS": "rhcos",
    "Red Hat Enterprise Linux": "rhel",
    "Rocky Linux": "rocky",
    "Debian GNU/Linux": "debian",
    "SUSE Linux Enterprise Server": "sles",
    "Amazon Linux": "amzn",
    "Flatcar Container Linux by Kinvolk": "flatcar",
}
"""By the beginning of the kubelet's `osImage`; a longer name comes before the one that it begins with."""
_NUMBER = re.compile(r" (\d{1,4})(?:\.(\d{1,4}))?")


def os_tag(labels: Mapping[str, str], image: str) -> str:
    """Empty if the system is unknown."""
    if labels.get(OS_ID):
        return f"{labels[OS_ID]}{labels.get(OS_VERSION, '')}"
    for start, name in _NAMES.items():
        if image.startswith(start):
            found = _NUMBER.match(image, len(start))
            if found is None:
                return name
            return name + found.group(1) + (f".{found.group(2)}" if found.group(2) else "")
    return ""
