"""Prices of machines: what users write, the catalogue with its dates, own machines, commitments, spot histories.

The billing price is what an invoice says about the hours that were used. A price by which a machine is chosen is
another one: a reserved machine costs nothing more when it is used. `decision_rate` is the only function for the latter,
and no statement uses it.
"""
