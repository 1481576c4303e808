{{/* Options that Helm would ignore in silence, or that have another effect than it seems: one line each. */}}
{{- define "shoal.warnings" -}}
{{- $listed := .Files.Get "files/options.yaml" | fromYaml -}}
{{- $options := dict -}}
{{- $groups := dict -}}
{{- range $option := $listed.options -}}
  {{- $_ := set $options $option.path true -}}
  {{- $group := "" -}}
  {{- range $name := initial (splitList "." $option.path) -}}
    {{- $group = trimPrefix "." (printf "%s.%s" $group $name) -}}
    {{- $_ := set $groups $group true -}}
  {{- end -}}
{{- end -}}
{{- $given := .Values | toJson | fromJson -}}
{{- if hasKey (get $given "nodeFeatureDiscovery" | default dict) "enabled" }}
{{- $_ := unset $given "nodeFeatureDiscovery" }}
- nodeFeatureDiscovery.enabled is not an option of the chart; it is read as nfd.enabled
{{- end }}
{{- with get $given.mig "config" }}
{{- $_ := unset $given.mig "config" }}
- mig.config is not an option of the chart; it is read as migManager.config.default={{ . }}, the layout of nodes without the label nvidia.com/mig.config
{{- end }}
{{- with get $given "mps" }}
{{- $_ := unset $given "mps" }}
- mps.enabled and mps.replicas are not options of the chart; they are read as a configuration of the device plugin with sharing.mps, if devicePlugin.config is not given
{{- end }}
{{- $values := include "shoal.values" . | fromJson }}
{{- $tag := $values.toolkit.version }}
{{- if ne $tag (toString .Values.toolkit.version) }}
- toolkit.version {{ .Values.toolkit.version }} is not a tag of the image; it is read as {{ $tag }}
{{- end }}
{{- if regexMatch "^v[0-9]+\\.[0-9]+\\.[0-9]+" $tag }}
{{- if semverCompare (printf "<%s" $listed.leastSafeToolkit) (regexFind "^v[0-9]+\\.[0-9]+\\.[0-9]+" $tag) }}
- toolkit.version {{ $tag }} lets containers escape to the host (CVE-2025-23266, CVE-2025-23359); use {{ $listed.leastSafeToolkit }} or newer
{{- end }}
{{- end }}
{{- if and $values.devicePlugin.config.name (not $values.devicePlugin.config.default) }}
- devicePlugin.config.default is empty: the configuration has no effect on nodes without the label nvidia.com/device-plugin.config
{{- end }}
{{- if not $values.nfd.enabled }}
- nfd.enabled is false: nodes get no GPU stack until another discovery writes the label feature.node.kubernetes.io/pci-10de.present
{{- end }}
{{- include "shoal.unknown" (list $given "" $options $groups) }}
{{- end -}}

{{/* Names that are no options, each with the option that was probably meant. The argument is a list: an object of
values, the path before its names, all options and all groups of options. */}}
{{- define "shoal.unknown" -}}
{{- $before := index . 1 -}}
{{- $options := index . 2 -}}
{{- $groups := last . -}}
{{- range $name, $value := first . -}}
  {{- $path := printf "%s%s" $before $name -}}
  {{- if and (hasKey $groups $path) (kindIs "map" $value) -}}
    {{- include "shoal.unknown" (list $value (printf "%s." $path) $options $groups) -}}
  {{- else if not (or (hasKey $options $path) (hasKey $groups $path) (eq $path "global")) }}
- {{ $path }} is not an option and is ignored{{ include "shoal.near" (list $name $before $options $groups) }}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* The option beside an unknown name that differs from it in one letter, or in capital letters. */}}
{{- define "shoal.near" -}}
{{- $wanted := include "shoal.deletions" (first . | lower) | fromJsonArray -}}
{{- $before := index . 1 -}}
{{- $near := "" -}}
{{- range $path := concat (keys (index . 2)) (keys (last .)) | sortAlpha -}}
  {{- $name := trimPrefix $before $path -}}
  {{- if and (not $near) (hasPrefix $before $path) (not (contains "." $name)) -}}
    {{- range $word := include "shoal.deletions" (lower $name) | fromJsonArray -}}
      {{- if has $word $wanted -}}{{- $near = $path -}}{{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- with $near }}; did you mean {{ . }}?{{ end -}}
{{- end -}}

{{/* A word, and what is left of it without one of its letters: one added, missing or changed letter, or two letters in
the wrong order, leave a word in common. */}}
{{- define "shoal.deletions" -}}
{{- $word := trunc 60 . -}}
{{- $found := list $word -}}
{{- range $at, $letter := splitList "" $word -}}
  {{- $found = append $found (printf "%s%s" (substr 0 $at $word) (substr (int (add1 $at)) -1 $word)) -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}
