"""Expressions in CEL as Kubernetes has them: in definitions, policies and webhook match conditions."""

from __future__ import annotations

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.program import CelProgram, compile_expression

__all__ = ["CelFault", "CelProgram", "compile_expression"]
