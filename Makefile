.PHONY: proto proto-check

# Regenerate gen/ from proto/. Needs protoc 3.21 (apt-get install protobuf-compiler).
proto:
	./proto/generate.sh gen

# Fail if gen/ is not what proto/ generates. Passes where protoc is missing.
proto-check:
	@command -v protoc >/dev/null || { echo "protoc is missing: gen/ was not checked"; exit 0; }; \
	tmp=$$(mktemp -d) && trap 'rm -rf $$tmp' EXIT && ./proto/generate.sh $$tmp && diff -r gen $$tmp
