{{/* The objects of a file below files/, with the names of this release. The argument is a list: context and file. */}}
{{- define "shoal.objects" -}}
{{- $root := first . -}}
{{- $text := $root.Files.Get (printf "files/%s.yaml" (last .)) | fromYaml | toJson -}}
{{- $text | replace "RELEASE-NAMESPACE" $root.Release.Namespace | replace "RELEASE-NAME" $root.Release.Name -}}
{{- end -}}

{{/* One object of the release, with its labels. The argument is a list: context, values and object. */}}
{{- define "shoal.object" -}}
{{- $root := first . -}}
{{- $object := last . -}}
{{- $labels := merge (dict "app.kubernetes.io/managed-by" $root.Release.Service) (default dict $object.metadata.labels) -}}
{{- $_ := set $object.metadata "labels" (merge $labels (index . 1).labels) -}}
---
{{ toYaml $object }}
{{ end -}}

{{/* The component of an object, by its label. */}}
{{- define "shoal.component" -}}
{{- index .metadata.labels "app.kubernetes.io/component" -}}
{{- end -}}

{{/* The labels of objects that only the templates make. The argument is a list: context and component. */}}
{{- define "shoal.labels" -}}
app.kubernetes.io/name: shoal
app.kubernetes.io/instance: {{ (first .).Release.Name | quote }}
app.kubernetes.io/component: {{ last . }}
app.kubernetes.io/version: {{ (first .).Chart.AppVersion | replace "+" "_" | quote }}
{{- end -}}

{{/* Shoal's image, with its digest or tag. The argument is a list: context and values. */}}
{{- define "shoal.image" -}}
{{- $image := (last .).image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default ((first .).Chart.AppVersion | replace "+" "_") $image.tag }}
{{- end -}}
{{- end -}}

{{/* Puts the values into the pod of a process without a configuration. The argument is a list: context, values, pod. */}}
{{- define "shoal.pod" -}}
{{- $values := index . 1 -}}
{{- $pod := last . -}}
{{- $container := first $pod.containers -}}
{{- $_ := set $container "image" (include "shoal.image" (list (first .) $values)) -}}
{{- $_ := set $container "imagePullPolicy" $values.image.pullPolicy -}}
{{- with $values.resources -}}{{- $_ := set $container "resources" . -}}{{- end -}}
{{- $_ := set $pod "priorityClassName" $values.priorityClassName -}}
{{- range $name := list "nodeSelector" "tolerations" "affinity" -}}
{{- with get $values $name -}}{{- $_ := set $pod $name . -}}{{- end -}}
{{- end -}}
{{- with $values.imagePullSecrets -}}
{{- $_ := set $pod "imagePullSecrets" (include "shoal.secrets" . | fromJson).names -}}
{{- end -}}
{{- end -}}

{{/* The image of the operator: Shoal's, if no other is named. The argument is a list: context and values. */}}
{{- define "shoal.operatorImage" -}}
{{- $operator := (last .).operator -}}
{{- if $operator.image -}}
{{- $tag := default (first .).Chart.AppVersion $operator.version -}}
{{ with $operator.repository }}{{ . }}/{{ end }}{{ $operator.image }}{{ hasPrefix "sha256:" $tag | ternary "@" ":" }}{{ $tag }}
{{- else -}}
{{ include "shoal.image" . }}
{{- end -}}
{{- end -}}

{{/* Names, or objects with a name, as a list of objects. */}}
{{- define "shoal.secrets" -}}
{{- $found := list -}}
{{- range . -}}
{{- $found = append $found (kindIs "map" . | ternary . (dict "name" (toString .))) -}}
{{- end -}}
{{- dict "names" $found | toJson -}}
{{- end -}}

{{/* The second object over the first. The argument is a list: the two objects. */}}
{{- define "shoal.merged" -}}
{{- $merged := first . -}}
{{- range $name, $value := last . -}}
{{- $below := get $merged $name -}}
{{- if and (kindIs "map" $value) (kindIs "map" $below) -}}
{{- $value = include "shoal.merged" (list $below $value) | fromJson -}}
{{- end -}}
{{- $_ := set $merged $name $value -}}
{{- end -}}
{{- $merged | toJson -}}
{{- end -}}
