package thirds

// order plays a real order.
func (w *World) order() {}
