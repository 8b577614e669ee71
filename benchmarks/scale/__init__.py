"""What a day of 10^6 rollouts takes, measured on this machine."""
