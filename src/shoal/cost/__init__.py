"""What GPUs cost, by team, queue and job: prices, the class of every second of every node, statements, chargeback.

Pure: records and prices in, amounts out. No clock, no file, no network. Times are milliseconds since 1970 (`_ms`),
shares of a device are counted in `FULL_SHARE`, money is `Decimal`.
"""
