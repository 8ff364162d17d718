// Package prometheus serves the metrics of package observe to Prometheus.
//
//	meters, handler, err := prometheus.New()
//	o, err := observe.New(observe.Options{Meters: meters})
//	http.Handle("/metrics", handler)
package prometheus

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
)

// New makes a provider of meters for observe.Options, and the handler of a page that Prometheus reads. Names of metrics have
// underscores instead of dots, and the unit at their end: tasq.job.duration is tasq_job_duration_seconds.
func New() (*metric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	e, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, nil, fmt.Errorf("make the exporter: %w", err)
	}
	return metric.NewMeterProvider(metric.WithReader(e)), promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}
