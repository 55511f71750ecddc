"""The corpus `synthetic`: sentences that espeak-ng speaks in many voices."""
