//! A checker against the model, over many generated traces.
