"""Send the same requests to two API servers and compare their answers.

    python -m tools.differences --left KUBECONFIG --right KUBECONFIG [--seed N ...] [--count M] [--json FILE]

The left server is the one to measure against (a kube-apiserver), the right one the one under test (`shoal up`). Two
sources of requests: `scenarios/*.yaml`, named sequences written by hand, and mutations of the valid objects in
`objects.yaml`, drawn by seed (`fuzzing.py`). A mutation is sent with `dryRun=All`, so one run leaves nothing but a few
namespaces and the base objects, which it deletes at its end.

A difference has a signature without names and numbers; the table counts differences by signature, the most serious
first: other status code, then other field or reason, then other words. The exit code is 1 if there is a signature that
`allowed.yaml` does not explain.
"""
