"""The safetensors reader and writer, and checkpoint folders: knows bytes, not networks."""
