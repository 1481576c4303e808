"""PromQL: its expressions as trees, and their values over series in memory.

The parser knows the whole language but native histograms and `@`; the evaluator has the functions that rules of alerts
use. Both are compared with Prometheus' own tool in the tests.
"""
