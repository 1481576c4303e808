"""Expressions in CEL as Kubernetes has them: in definitions, policies and webhook match conditions."""

from __future__ import annotations

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.program import Program, compile_expression

__all__ = ["CelFault", "Program", "compile_expression"]
