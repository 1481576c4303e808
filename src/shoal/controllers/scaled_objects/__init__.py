"""Runs ScaledObjects of KEDA where KEDA does not run: triggers, autoscalers, and the size beside them."""
