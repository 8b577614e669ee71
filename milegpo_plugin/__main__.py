"""``python -m milegpo_plugin`` is the command ``milegpo``."""

from milegpo_plugin.cli import main

main()
