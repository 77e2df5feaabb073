"""The parts of ``scripts/campaign.py``; each has ``cases(lab, everything)``."""
