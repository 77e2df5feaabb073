"""Looking ahead: alpha-beta search, eager for every game and network, compiled for chess."""
