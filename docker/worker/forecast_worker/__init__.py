"""The reference forecasting worker: one share of a run, from panel to cells and summary.

It shows what runtender expects of a worker and nothing more: arguments and environment in, cells and one
summary per rank out, an exit status. Copy it to start your own.
"""
