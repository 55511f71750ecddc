"""A fitted network as an ONNX graph."""
