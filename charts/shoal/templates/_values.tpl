{{/* All options with their values, of the right type; names that other guides use are translated. */}}
{{- define "shoal.values" -}}
{{- $given := include "shoal.given" . | fromJson -}}
{{- $tree := dict -}}
{{- range $option := (.Files.Get "files/options.yaml" | fromYaml).options -}}
  {{- $names := splitList "." $option.path -}}
  {{- $value := $given -}}
  {{- range $name := $names -}}
    {{- $value = kindIs "map" $value | ternary (get (kindIs "map" $value | ternary $value dict) $name) "" -}}
  {{- end -}}
  {{- $isEmpty := or (kindIs "invalid" $value) (eq (toString $value) "") -}}
  {{- if and (eq $option.type "string") (not (kindIs "string" $value)) -}}
    {{- $value = $isEmpty | ternary "" (toString $value) -}}
  {{- else if $isEmpty -}}
    {{- $value = get (dict "boolean" false "integer" 0 "array" list "object" dict "string" "" "numberOrText" "") $option.type -}}
  {{- end -}}
  {{- $branch := $tree -}}
  {{- range $name := initial $names -}}
    {{- if not (hasKey $branch $name) -}}{{- $_ := set $branch $name dict -}}{{- end -}}
    {{- $branch = get $branch $name -}}
  {{- end -}}
  {{- $_ := set $branch (last $names) $value -}}
{{- end -}}
{{- $tree | toJson -}}
{{- end -}}

{{/* What the user gave, with the names of the chart. */}}
{{- define "shoal.given" -}}
{{- $given := .Values | toJson | fromJson -}}
{{- $older := get $given "nodeFeatureDiscovery" -}}
{{- if and (kindIs "map" $older) (hasKey (default dict $older) "enabled") -}}
  {{- $_ := set $given.nfd "enabled" (and $given.nfd.enabled $older.enabled) -}}
{{- end -}}
{{- with get $given.mig "config" -}}
  {{- if eq $given.migManager.config.default "all-disabled" -}}
    {{- $_ := set $given.migManager.config "default" . -}}
  {{- end -}}
{{- end -}}
{{- $mps := get $given "mps" -}}
{{- $config := $given.devicePlugin.config -}}
{{- if and (kindIs "map" $mps) $mps (ne (toString (get (default dict $mps) "enabled")) "false") (not (or $config.create $config.name $config.default $config.data)) -}}
  {{- $replicas := hasKey $mps "replicas" | ternary (get $mps "replicas") 2 -}}
  {{- if lt (int $replicas) 2 -}}{{- fail "mps.replicas must be a whole number of at least 2" -}}{{- end -}}
  {{- $text := printf "version: v1\nsharing:\n  mps:\n    resources:\n      - name: nvidia.com/gpu\n        replicas: %d\n" (int $replicas) -}}
  {{- $_ := set $given.devicePlugin "config" (dict "create" true "name" "shoal-mps-config" "default" "mps" "data" (dict "mps" $text)) -}}
{{- end -}}
{{- $_ := set $given.toolkit "version" (include "shoal.toolkitTag" $given.toolkit.version) -}}
{{- $given | toJson -}}
{{- end -}}

{{/* Tags of the toolkit begin with a v, and those before 1.18.0 end with a distribution. */}}
{{- define "shoal.toolkitTag" -}}
{{- $tag := toString (default "" .) -}}
{{- if regexMatch "^v?[0-9]{1,5}\\.[0-9]{1,5}\\.[0-9]{1,5}(-[0-9A-Za-z.-]{1,60})?$" $tag -}}
  {{- $tag = printf "v%s" (trimPrefix "v" $tag) -}}
  {{- if and (not (contains "-" $tag)) (semverCompare "<1.18.0" $tag) -}}{{- $tag = printf "%s-ubuntu20.04" $tag -}}{{- end -}}
{{- end -}}
{{- $tag -}}
{{- end -}}
