package transport

// Speaking returns the config of a silo of that wire version; 0 is the present one.
func Speaking(cfg Config, version uint16) Config {
	cfg.version = version
	return cfg
}
