"""The history of a cluster: which pod held which device when, how devices were used, why pods waited, which nodes there
were.

Held devices are exact intervals, from the watch; device samples are means of intervals, which grow with their age. What
was not recorded is unknown, and never idle. `tables.py` is the port that a backend implements, `ledger.py` and
`samples.py` what is the same for all of them.
"""
