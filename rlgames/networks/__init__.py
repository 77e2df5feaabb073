"""Networks: from what the features see of boards to values."""
