//! What cosched writes.
