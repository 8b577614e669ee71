#!/usr/bin/env bash
# Gateway, controller and trainer of Agent Lightning 1.0 on one machine.
# Arguments go to train.py. Logs of gateway and controller: $LOGS.
set -euo pipefail
cd "$(dirname "$0")/../.."

MODEL=${MODEL:-Qwen/Qwen2.5-1.5B-Instruct}
PORT=${PORT:-8181}
KEY=${KEY:-local}
LOGS=${LOGS:-runs/agl1}
URL=http://127.0.0.1:$PORT
QUIET=(hydra.output_subdir=null "hydra.run.dir=$LOGS")
mkdir -p "$LOGS"

agl-server "port=$PORT" "key=$KEY" "default_proxy.model_name=$MODEL" "${QUIET[@]}" >"$LOGS/server.log" 2>&1 &
SERVER=$!
agl-controller runner_type=local local_runner.poll_interval=1 "agl_server.url=$URL" "agl_server.key=$KEY" \
    "${QUIET[@]}" >"$LOGS/controller.log" 2>&1 &
CONTROLLER=$!
trap 'kill "$CONTROLLER" "$SERVER" 2>/dev/null || true' EXIT

until curl --max-time 1 -sf "$URL/healthz" >/dev/null; do
    kill -0 "$SERVER" || { echo "agl-server stopped: see $LOGS/server.log" >&2; exit 1; }
    sleep 1
done

python examples/agl1/train.py \
    "agentlightning.agl_base_url=$URL" \
    "agentlightning.agl_key=$KEY" \
    "actor_rollout_ref.model.path=$MODEL" \
    "$@"
