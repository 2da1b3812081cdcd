#pragma once

#include "planner/spec/machine/gpu_spec.h"

namespace shardwise {

/// The fields of a FitRecord, for FieldReader and FieldWriter: planner/spec/json/fields.h.
template <class Io, class Fit>
void list_fit(Io& io, Fit& fit) {
  io.require({"measured", "method"});
  io.boolean("measured", fit.measured);
  io.text("fitted_on", fit.fitted_on);
  io.text("method", fit.method);
  if (!fit.measured) return;
  io.require({"fitted_on", "points", "median_error", "p95_error"});
  io.integer("points", fit.points, 1, 1'000'000'000);
  io.number("median_error", fit.median_error, 0, 10);
  io.number("p95_error", fit.p95_error, 0, 100);
}

}  // namespace shardwise
