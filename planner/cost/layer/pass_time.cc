#include "planner/cost/layer/layer_time.h"

namespace shardwise {

PassTime& PassTime::operator+=(const PassTime& o) {
  gemm += o.gemm;
  attention += o.attention;
  memory_bound += o.memory_bound;
  tp += o.tp;
  cp += o.cp;
  ep += o.ep;
  tp_hidden += o.tp_hidden;
  cp_hidden += o.cp_hidden;
  kernels += o.kernels;
  flops += o.flops;
  return *this;
}

PassTime operator*(double factor, const PassTime& t) {
  PassTime r = t;
  for (Seconds* s :
       {&r.gemm, &r.attention, &r.memory_bound, &r.tp, &r.cp, &r.ep, &r.tp_hidden, &r.cp_hidden}) {
    *s = *s * factor;
  }
  r.kernels *= factor;
  r.flops = r.flops * factor;
  return r;
}

}  // namespace shardwise
