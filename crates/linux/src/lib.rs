//! The Linux back-end of cosched.
