"""Stepwell's control plane. Import it as ``stepwell_server``; inside this folder imports are relative."""
