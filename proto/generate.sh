#!/bin/sh
# Generates Go from the .proto files beside this script into directory $1.
# Needs protoc 3.21; the plugins are built at the versions pinned here.
set -eu
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

GOBIN=$tmp go install github.com/cosmos/gogoproto/protoc-gen-gocosmos@v1.7.2
GOBIN=$tmp go install github.com/grpc-ecosystem/grpc-gateway/protoc-gen-grpc-gateway@v1.16.0

dir() { go mod download "$1" && go list -m -f '{{.Dir}}' "$1"; }
sdk=$(dir github.com/cosmos/cosmos-sdk)
cosmosproto=$(dir github.com/cosmos/cosmos-proto)
gogoproto=$(dir github.com/cosmos/gogoproto)
gateway=$(dir github.com/grpc-ecosystem/grpc-gateway)

any=Mgoogle/protobuf/any.proto=github.com/cosmos/gogoproto/types/any
# The plugin takes one Go package at a time.
for pkg in $(find proto -name '*.proto' -exec dirname {} + | LC_ALL=C sort -u); do
	PATH=$tmp:$PATH protoc -I proto -I "$sdk/proto" -I "$cosmosproto/proto" -I "$gogoproto" \
		-I "$gogoproto/protobuf" -I "$gateway/third_party/googleapis" \
		--gocosmos_out="plugins=grpc,paths=source_relative,$any:$out" \
		--grpc-gateway_out="logtostderr=true,allow_colon_final_segments=true,paths=source_relative:$out" \
		"$pkg"/*.proto
done
