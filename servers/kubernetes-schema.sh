#!/usr/bin/env bash
# Validates a manifest against the OpenAPI schema that Kubernetes publishes (api/openapi-spec/swagger.json
# of its source, through the Go module proxy). Unknown fields are errors.
#
#   kubernetes-schema.sh MANIFEST.yaml
#
# Settings: KUBERNETES_VERSION=v1.34.1
set -euo pipefail
VERSION="${KUBERNETES_VERSION:-v1.34.1}"
HOME_DIR="${SERVERS_HOME:-$HOME/.cache/bucketload-servers}"
S="$HOME_DIR/kubernetes-schema"
SCHEMA="$S/swagger-$VERSION.json"
mkdir -p "$S"
if [ ! -s "$SCHEMA" ]; then
  # A separate module, so that the caller's is not touched.
  mkdir -p "$S/module"
  [ -f "$S/module/go.mod" ] || (cd "$S/module" && go mod init schema >&2)
  folder=$(cd "$S/module" && go mod download -json "k8s.io/kubernetes@$VERSION" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",$/\1/p')
  cp "$folder/api/openapi-spec/swagger.json" "$SCHEMA.part"
  mv "$SCHEMA.part" "$SCHEMA"
fi
if [ ! -x "$S/venv/bin/python3" ]; then
  python3 -m venv "$S/venv"
  "$S/venv/bin/pip" install --quiet --disable-pip-version-check pyyaml >&2
fi
exec "$S/venv/bin/python3" - "$SCHEMA" "$1" <<'PY'
import json, sys, yaml

definitions = json.load(open(sys.argv[1]))["definitions"]
problems = []

def check(value, schema, where):
    if "$ref" in schema:
        return check(value, definitions[schema["$ref"].rsplit("/", 1)[1]], where)
    if schema.get("format") == "int-or-string":
        if not isinstance(value, (int, str)):
            problems.append(f"{where}: neither a number nor a text")
        return
    kind = schema.get("type", "object" if "properties" in schema else None)
    types = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    if kind and (not isinstance(value, types[kind]) or (kind == "integer" and isinstance(value, bool))):
        problems.append(f"{where}: {value!r} is no {kind}")
        return
    if "enum" in schema and value not in schema["enum"]:
        problems.append(f"{where}: {value!r} is none of {schema['enum']}")
    if kind == "array":
        for i, item in enumerate(value):
            check(item, schema.get("items", {}), f"{where}[{i}]")
    if kind == "object":
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name in schema.get("required", []):
            if name not in value:
                problems.append(f"{where}: {name} is missing")
        for name, item in value.items():
            if name in known:
                check(item, known[name], f"{where}.{name}")
            elif isinstance(others, dict):
                check(item, others, f"{where}.{name}")
            elif known:
                problems.append(f"{where}: there is no field {name}")

kinds = {}
for name, definition in definitions.items():
    for gvk in definition.get("x-kubernetes-group-version-kind", []):
        group = gvk["group"] + "/" if gvk["group"] else ""
        kinds[(group + gvk["version"], gvk["kind"])] = definition
documents = [d for d in yaml.safe_load_all(open(sys.argv[2])) if d is not None]
if not documents:
    problems.append("there is no document")
for document in documents:
    key = (document.get("apiVersion"), document.get("kind"))
    if key not in kinds:
        problems.append(f"there is no kind {key}")
    else:
        check(document, kinds[key], document["kind"])
for problem in problems:
    print(f"kubernetes-schema: {problem}", file=sys.stderr)
print(f"{len(documents)} documents, {len(problems)} problems")
sys.exit(1 if problems else 0)
PY
