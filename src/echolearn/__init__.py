"""Echo state networks whose weights are all learned."""
