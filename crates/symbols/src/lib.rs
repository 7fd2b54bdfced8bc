//! Object files and debug data: what turns addresses into names. Knows no trace format.
