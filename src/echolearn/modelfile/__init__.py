"""Reads and writes safetensors files and checkpoint folders; knows bytes, not networks."""
