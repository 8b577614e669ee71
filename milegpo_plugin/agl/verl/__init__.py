"""The GPU backend: Agent Lightning 0.3 with verl.

spans → trajectories → credit → one float32 advantage on the last token of every step → verl.
Everything here runs in the trainer's Ray driver process; the workers see advantages only.
Importing the package refuses releases that do not work together, before they fail in the middle.
"""

from milegpo_plugin.agl.verl.versions import require_versions

require_versions()
