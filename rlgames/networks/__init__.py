"""Networks: they turn what features see of a board into its value."""
