"""Credit against ground truth: exact MDPs, where the true advantage of every step is known.

Axes: ``_M`` MDPs, ``_S`` states, ``_A`` actions, ``_O`` outcomes of an action, ``_T`` time,
``_K`` rollouts, ``_X`` their steps, ``_G`` groups, ``_N`` nodes of state graphs.
"""
