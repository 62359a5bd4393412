package gateway

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/tally-network/tally/gateway/api"
)

type object = map[string]any

// describe answers with the routes and the fields of their requests, as OpenAPI has them. Fields that are refused are left out.
func (s *Server) describe(w http.ResponseWriter, r *http.Request) error {
	paths := object{}
	for _, a := range s.apis {
		for _, route := range a.Routes {
			name := strings.NewReplacer("{$}", "", "...}", "}").Replace(route.Path)
			at, _ := paths[name].(object)
			if at == nil {
				at = object{}
				paths[name] = at
			}
			at[strings.ToLower(route.Method)] = operation(a.Name, route, name)
		}
	}
	return api.Write(w, http.StatusOK, object{
		"openapi": "3.1.0",
		"info":    object{"title": "Tally gateway", "version": "1", "description": "The APIs of OpenAI, Anthropic and ollama, in front of language models."},
		"paths":   paths,
		"components": object{"securitySchemes": object{
			"bearer": object{"type": "http", "scheme": "bearer"}, "header": object{"type": "apiKey", "in": "header", "name": "X-Api-Key"},
		}},
		"security": []object{{"bearer": []string{}}, {"header": []string{}}},
	})
}

func operation(tag string, route api.Route, name string) object {
	o := object{
		"summary": route.Summary, "tags": []string{tag},
		"responses": object{"200": object{"description": "The answer."}, "default": object{"description": "An error, in the shape of " + tag + "'s API."}},
	}
	if route.Free {
		o["security"] = []object{}
	}
	if strings.Contains(name, "{name}") {
		o["parameters"] = []object{{"name": "name", "in": "path", "required": true, "schema": object{"type": "string"}}}
	}
	if route.Request != nil {
		o["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": schema(reflect.TypeOf(route.Request))}}}
	}
	return o
}

var raw = reflect.TypeFor[json.RawMessage]()

// schema returns the JSON schema of a type of requests. None of them has itself in it.
func schema(t reflect.Type) object {
	switch {
	case t == raw:
		return object{} // of several forms
	case t.Kind() == reflect.Pointer:
		return schema(t.Elem())
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schema(t.Elem())}
	}
	fields := object{}
	addFields(fields, t)
	return object{"type": "object", "properties": fields}
}

func addFields(to object, t reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Tag.Get("why") != "": // it is refused
		case f.Anonymous && name == "":
			addFields(to, f.Type)
		case name != "":
			to[name] = schema(f.Type)
		}
	}
}
