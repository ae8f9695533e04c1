{{- /* redlatch.deployment: one pod that runs a command of redlatch. It is given a dict of root, name, args and, if others may reach it, port. */ -}}
{{- define "redlatch.deployment" -}}
{{- $v := .root.Values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .root.Release.Name }}-{{ .name }}
  labels: {{- include "redlatch.labels" . | nindent 4 }}
spec:
  replicas: 1
  selector:
    matchLabels: {{- include "redlatch.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "redlatch.labels" . | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      {{- with $v.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .name }}
          image: {{ required "image: the image of redlatch in your registry" $v.image | quote }}
          args: {{- toYaml .args | nindent 12 }}
          env:
            - name: REDLATCH_URL
              valueFrom:
                secretKeyRef: {name: {{ required "secret: the Secret that has REDLATCH_URL" $v.secret | quote }}, key: REDLATCH_URL}
            {{- with $v.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- with .port }}
          ports: [{name: metrics, containerPort: {{ . }}}]
          readinessProbe: {tcpSocket: {port: metrics}}
          {{- end }}
          securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
          resources: {{- toYaml $v.resources | nindent 12 }}
{{- end -}}

{{- define "redlatch.selector" -}}
app.kubernetes.io/name: redlatch
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "redlatch.labels" -}}
{{ include "redlatch.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version | replace "+" "_" }}
{{- end -}}
