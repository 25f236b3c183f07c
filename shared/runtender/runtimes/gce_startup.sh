#!/bin/bash
# What a worker VM does at boot: run one container, and tell how it ended, whatever happens on the way.
#
# One rule orders everything below. The terminal object of this try decides how the job ended; it is written once, by
# whoever is first, and this VM removes itself only when it exists. So the script looks for it before anything else,
# prints its own on the serial console before it tries to store it, and stays up for as long as it cannot.
#
# It runs as root on Container-Optimized OS, at every boot. There is bash, curl, sed, awk, coreutils and docker, and no
# jq or python; /tmp is memory, /var is disk. Tools are called by bare name, with the caller's PATH and curl settings,
# so that the same text runs on a simulated machine. Words between at-signs are filled in, quoted, for each try.

# No errexit: the verdict is the container's own exit code, never the status of the last command that happened to run.
set -u -o pipefail

readonly PROJECT=@@PROJECT@@ ZONE=@@ZONE@@ INSTANCE=@@INSTANCE@@
readonly NONCE=@@NONCE@@ ATTEMPT=@@ATTEMPT@@ PLACEMENT=@@PLACEMENT@@
readonly STATUS_BUCKET=@@STATUS_BUCKET@@ STARTED_OBJECT=@@STARTED_OBJECT@@ TERMINAL_OBJECT=@@TERMINAL_OBJECT@@
readonly LOG_BUCKET=@@LOG_BUCKET@@ LOG_OBJECT=@@LOG_OBJECT@@ LOG_URI=@@LOG_URI@@
readonly SELF_DELETE=@@SELF_DELETE@@ IMAGE=@@IMAGE@@ GPU_COUNT=@@GPU_COUNT@@
readonly -a SHM_SIZE=(@@SHM_SIZE@@) ENVIRONMENT=(@@ENVIRONMENT@@) SECRETS=(@@SECRETS@@)
readonly -a COMMAND=(@@COMMAND@@)

# Seconds. The last pause repeats.
readonly -a PAUSES=(@@PAUSES@@)
readonly LOG_EVERY=@@LOG_EVERY@@ HTTP_TIMEOUT=@@HTTP_TIMEOUT@@ STOP_GRACE=@@STOP_GRACE@@
readonly LAST_LOG_LIMIT=@@LAST_LOG_LIMIT@@ HURRIED_LOG_LIMIT=@@HURRIED_LOG_LIMIT@@ PULL_TRIES=6 SECRET_TRIES=6
# How the work ends when it comes to no container.
readonly ALREADY_DECIDED=10 NO_GPU_DRIVER=11 NO_IMAGE=12 NO_SECRET=13

readonly ROOT=${SF_GUEST_STATE:-/var/lib} DEVICES=${SF_GUEST_DEVICES:-/dev}
readonly STATE=${ROOT}/sf-${NONCE} NVIDIA=${ROOT}/nvidia CONTAINER=sf-${NONCE}
readonly SETUP_LOG=${STATE}/setup.log STARTED=${STATE}/started.json TERMINAL=${STATE}/terminal.json
readonly EXEC_START=${STATE}/exec_start # there as soon as a container may run
# docker and its credential helper want a home that can be written to; no token is ever in it.
export HOME=${STATE} DOCKER_CONFIG=${STATE}/docker

BOOT_EPOCH=$(date +%s)
EXEC_START_EPOCH='' END_EPOCH=''
SIGNAL='' PREEMPTED='' ENDING='' STOPPED_BY_US='' # empty is no
GPU_FLAGS=()

say() { printf 'runtender: %s\n' "$*"; }
logged() { "$@" >>"${SETUP_LOG}" 2>&1; }

pause() {
  local last=$((${#PAUSES[@]} - 1))
  sleep "${PAUSES[$(($1 < last ? $1 : last))]}"
}

metadata() {
  curl -sf -m 5 -H 'Metadata-Flavor: Google' "http://metadata.google.internal/computeMetadata/v1/$1"
}

authorization() {
  metadata instance/service-accounts/default/token |
    sed -n 's/.*"access_token" *: *"\([^"]*\)".*/header = "Authorization: Bearer \1"/p'
}

# Calls with a fresh token, which reaches curl through a pipe, not by its arguments or a file; a body therefore comes
# from a file. Prints the HTTP status; 000 is no answer.
call() { authorization | curl -sS -K - -w '%{http_code}' "$@"; }

# create BUCKET OBJECT FILE TYPE SECONDS: stores a file as an object that must not exist yet.
create() {
  call -m "$5" -X POST -H "Content-Type: $4" -H 'Expect:' --data-binary "@$3" -o "$3.answer" \
    "https://storage.googleapis.com/upload/storage/v1/b/$1/o?uploadType=media&ifGenerationMatch=0&name=$2"
}

# is_stored STATUS FILE: the path holds our nonce, so an object that is there already is this one or the plane's word.
# An account that may create and not replace can be told so by a 403 instead of a 412.
is_stored() {
  case $1 in
    200 | 412) return 0 ;;
    403) [[ $(<"$2.answer") == *storage.objects.delete* ]] ;;
    *) return 1 ;;
  esac
}

store_marker() {
  local status
  status=$(create "${STATUS_BUCKET}" "$1" "$2" application/json "${HTTP_TIMEOUT}")
  is_stored "${status}" "$2" || { say "marker not stored: HTTP ${status}" && return 1; }
}

# Tries for as long as this VM lives: the platform's limit on its run time is the bound, and until then somebody may
# repair what is in the way, or the plane may read the console.
store_marker_at_last() {
  local try=0
  until store_marker "$1" "$2"; do pause "$((try++))"; done
}

# True when it is settled how this try ended before it began: the plane gave it up, and the create came late. A VM
# that cannot find out must not start, so it asks until it is answered; the plane's boot deadline is the bound.
is_decided() {
  local status try=0
  while :; do
    status=$(call -m "${HTTP_TIMEOUT}" -o /dev/null \
      "https://storage.googleapis.com/storage/v1/b/${STATUS_BUCKET}/o/${TERMINAL_OBJECT}?fields=name")
    case ${status} in
      200) return 0 ;;
      # 403 is how an absent object looks to an account that may read objects and not list them.
      403 | 404) return 1 ;;
    esac
    say "terminal object not readable: HTTP ${status}"
    pause "$((try++))"
  done
}

# Turns stdin into the inside of a JSON string, its last 800 characters.
json_text() { od -An -v -tu1 | awk -v limit=800 @@JSON_TEXT@@; }

text_or_null() { if [ -n "$1" ]; then printf '"%s"' "$1"; else printf null; fi; }

# write_marker FILE STATUS EXIT_CODE REASON DETAIL LOG_URI. The words put in are identifiers, or went through
# json_text. Moved into place whole: a second boot finds all of it or nothing.
write_marker() {
  local execute_s=null preempted=false
  if [ -n "${EXEC_START_EPOCH}" ] && [ -n "${END_EPOCH}" ]; then execute_s=$((END_EPOCH - EXEC_START_EPOCH)); fi
  if [ -n "${PREEMPTED}" ]; then preempted=true; fi
  {
    printf '{"status": "%s", "exit_code": %s, "instance": "%s", "zone": "%s", ' "$2" "$3" "${INSTANCE}" "${ZONE}"
    printf '"detail": "%s", "boot_epoch": %s, "exec_start_epoch": %s, ' "$5" "${BOOT_EPOCH}" "${EXEC_START_EPOCH:-null}"
    printf '"end_epoch": %s, "execute_s": %s, "writer": "guest", ' "${END_EPOCH:-null}" "${execute_s}"
    printf '"attempt": %s, "placement": %s, "preempted": %s, ' "${ATTEMPT}" "${PLACEMENT}" "${preempted}"
    printf '"signal": %s, "reason": %s, ' "$(text_or_null "${SIGNAL}")" "$(text_or_null "$4")"
    printf '"log_uri": %s}\n' "$(text_or_null "$6")"
  } >"$1.new"
  mv "$1.new" "$1"
}

# log_text LINES: of the container where one ran, else of what led up to it.
log_text() {
  if [ -e "${EXEC_START}" ]; then docker logs --tail "$1" "${CONTAINER}" 2>&1; else cat "${SETUP_LOG}"; fi
}

# Takes out what is a token or a key by its shape: a log is read by more people than may see one.
redact() { LC_ALL=C sed -E @@REDACTION@@; }

# Numbers are drawn through a file, because another process draws the first ones, and maybe another boot the last.
next_log_number() {
  local number=0
  if [ -e "${STATE}/log.number" ]; then number=$(<"${STATE}/log.number"); fi
  printf '%s\n' "$((number + 1))" | tee "${STATE}/log.number"
}

# Uploads the newest 64 KiB now and then: what is read while the container runs, and all there is if the VM vanishes.
watch_log() {
  local sum last='' recent=${STATE}/recent.log
  while sleep "${LOG_EVERY}"; do
    if [ ! -e "${EXEC_START}" ]; then continue; fi
    log_text 2000 | tail -c 65536 | redact >"${recent}"
    sum=$(cksum <"${recent}")
    if [ "${sum}" = "${last}" ]; then continue; fi
    create "${LOG_BUCKET}" "${LOG_OBJECT}$(next_log_number).log" "${recent}" text/plain "${HTTP_TIMEOUT}"
    last=${sum}
  done
}

# store_last_log NUMBER: within a limit, because the verdict waits for it.
store_last_log() {
  local status try=0 file=${STATE}/last.log limit=${LAST_LOG_LIMIT} deadline
  if [ -n "${ENDING}" ]; then limit=${HURRIED_LOG_LIMIT}; fi
  deadline=$((SECONDS + limit))
  log_text all | tail -c 5242880 | redact >"${file}"
  while ((SECONDS < deadline)); do
    status=$(create "${LOG_BUCKET}" "${LOG_OBJECT}$1.log" "${file}" text/plain "$((deadline - SECONDS))")
    if is_stored "${status}" "${file}"; then return 0; fi
    say "log not stored: HTTP ${status}"
    case ${status} in 000 | 408 | 429 | 5??) pause "$((try++))" ;; *) return 1 ;; esac
  done
  return 1
}

watch_preemption() {
  local url='http://metadata.google.internal/computeMetadata/v1/instance/preempted?wait_for_change=true'
  until [ "$(curl -sf -H 'Metadata-Flavor: Google' "${url}")" = TRUE ]; do pause 0; done
  : >"${STATE}/preempted"
}

# Finds out, once the work is over, whether this VM is going down: the container's end then says little about it.
notice_ending() {
  if [ -e "${STATE}/preempted" ] || [ "$(metadata instance/preempted)" = TRUE ]; then PREEMPTED=yes; fi
  if [ -n "${SIGNAL}${PREEMPTED}" ] || [ "$(systemctl is-system-running)" = stopping ]; then ENDING=yes; fi
}

remove_self() {
  local url=https://compute.googleapis.com/compute/v1/projects/${PROJECT}/zones/${ZONE}/instances/${INSTANCE}
  if [ "${SELF_DELETE}" = true ]; then
    say "removing itself: HTTP $(call -m "${HTTP_TIMEOUT}" -X DELETE -o /dev/null "${url}")"
  fi
  # If it may not, or the call failed: a stopped VM costs its disk only, and the plane removes what it finds.
  shutdown -h now || poweroff
}

# Prints the terminal marker on the console, from where the plane takes it if it cannot be stored.
announce() { printf 'SF-MARKER %s %s\n' "${NONCE}" "$(base64 -w 0 "${TERMINAL}")"; }

deliver() {
  store_marker_at_last "${TERMINAL_OBJECT}" "${TERMINAL}"
  remove_self
}

# finish STATUS EXIT_CODE REASON: tells how it ended, and leaves.
finish() {
  local detail number uri=''
  END_EPOCH=$(date +%s)
  if [ -e "${EXEC_START}" ]; then EXEC_START_EPOCH=$(<"${EXEC_START}"); fi
  detail=$(log_text 25 | tail -n 25 | tail -c 65536 | redact | tail -c 3200 | json_text)
  if [ -n "${LOG_BUCKET}" ]; then
    number=$(next_log_number)
    uri=${LOG_URI}${number}.log
  fi
  # Said before the log is stored, which takes its time: this VM may not have much left.
  write_marker "${TERMINAL}" "$1" "$2" "$3" "${detail}" "${uri}"
  announce
  if [ -n "${uri}" ] && ! store_last_log "${number}"; then
    write_marker "${TERMINAL}" "$1" "$2" "$3" "${detail}" ''
  fi
  deliver
}

# judge CODE OOM_KILLED REASON: a container's own exit code decides, unless this VM's end brought it about: that is no
# failure of the user's, and never a success. CODE is null where nothing ran, and `lost` where nobody knows any more.
judge() {
  # Asked to stop, a container may leave with any code, 0 among them, and its work undone.
  local code=$1 interrupted=${STOPPED_BY_US}
  case ${code} in
    lost) code=null interrupted=yes ;;
    null | 125 | 137 | 143) interrupted=${ENDING} ;;
  esac
  if [ "${code}:$2" = 137:true ]; then finish FAILED 137 OutOfMemory
  elif [ -n "${interrupted}" ]; then finish INTERRUPTED "${code}" "${PREEMPTED:+Preempted}"
  elif [ "${code}" = 0 ]; then finish SUCCEEDED 0 Completed
  else finish FAILED "${code}" "$3"; fi
}

# settle STATUS: by the container where one was started, else by the status of the work.
settle() {
  local code='' oom=''
  notice_ending
  if [ -e "${EXEC_START}" ]; then
    read -r _ code oom <<<"$(container_state)"
    judge "${code:-lost}" "${oom}" ExitCode
    return
  fi
  case $1 in
    "${ALREADY_DECIDED}") remove_self ;;
    "${NO_GPU_DRIVER}") judge null false GpuDriver ;;
    "${NO_IMAGE}") judge null false ImagePull ;;
    "${NO_SECRET}") judge null false ConfigFault ;;
    *) judge "$1" false ExitCode ;;
  esac
}

prepare_gpus() {
  local smi=${NVIDIA}/bin/nvidia-smi device
  logged cos-extensions install gpu || return 1
  # Bound onto itself the folder becomes a mount, and a mount can be made executable; a second one would only stack.
  mountpoint -q "${NVIDIA}" || logged mount --bind "${NVIDIA}" "${NVIDIA}" || return 1
  logged mount -o remount,exec "${NVIDIA}" || return 1
  # Makes the device files, and proves that the driver answers.
  if [ ! -x "${smi}" ]; then smi=nvidia-smi; fi
  logged "${smi}" || return 1
  GPU_FLAGS=(--volume "${NVIDIA}/lib64:/usr/local/nvidia/lib64" --volume "${NVIDIA}/bin:/usr/local/nvidia/bin")
  GPU_FLAGS+=(--env LD_LIBRARY_PATH=/usr/local/nvidia/lib64)
  for device in "${DEVICES}"/nvidia[0-9]* "${DEVICES}"/nvidia{ctl,-uvm,-uvm-tools,-modeset}; do
    if [ -e "${device}" ]; then GPU_FLAGS+=(--device "${device}"); fi
  done
}

# This VM's identity is shown to Google's registries only, by a helper that keeps no token.
pull_image() {
  local host=${IMAGE%%/*} try=0
  case ${host} in
    gcr.io | *.gcr.io | *.pkg.dev) logged docker-credential-gcr configure-docker "--registries=${host}" ;;
  esac
  until logged docker pull "${IMAGE}"; do
    if ((++try >= PULL_TRIES)); then return 1; fi
    pause "$((try - 1))"
  done
}

# export_secret NAME VERSION: reads a secret's version into a variable of this process, from where docker takes it. What it
# says is never on a command line or on the disk.
export_secret() {
  local answer status try=0
  while :; do
    answer=$(call -m "${HTTP_TIMEOUT}" "https://secretmanager.googleapis.com/v1/$2:access")
    status=${answer: -3}
    case ${status} in 000 | 408 | 429 | 5??) ((++try < SECRET_TRIES)) && pause "$((try - 1))" && continue ;; esac
    break
  done
  if [ "${status}" != 200 ]; then logged say "$1: $2: HTTP ${status}" && return 1; fi
  export "$1=$(printf %s "${answer}" | sed -n 's/.*"data" *: *"\([^"]*\)".*/\1/p' | base64 -d)"
}

export_secrets() {
  local secret
  for secret in "${SECRETS[@]}"; do export_secret "${secret%%=*}" "${secret#*=}" || return 1; done
}

# Without --rm, so that its state and log outlive it. If memory runs out the kernel takes the container before docker
# or this script, so that somebody is left to tell. Returns docker's own code if it does not start.
start_container() {
  local code
  EXEC_START_EPOCH=$(date +%s)
  printf '%s\n' "${EXEC_START_EPOCH}" >"${EXEC_START}"
  logged docker run --detach --name "${CONTAINER}" --oom-score-adj 500 \
    --log-driver json-file --log-opt max-size=50m --log-opt max-file=2 \
    "${SHM_SIZE[@]}" "${GPU_FLAGS[@]}" "${ENVIRONMENT[@]}" "${IMAGE}" "${COMMAND[@]}"
  code=$?
  if ((code != 0)); then rm "${EXEC_START}"; fi
  return "${code}"
}

# Prints whether it runs, its exit code, and whether memory ran out; nothing when docker does not know it.
container_state() {
  for _ in 1 2 3; do
    docker inspect --format '{{.State.Running}} {{.State.ExitCode}} {{.State.OOMKilled}}' "${CONTAINER}" && return
    pause 0
  done 2>/dev/null
}

is_container_up() { [[ $(container_state) == true* ]]; }

# All that may take long. The run's clock starts with the started marker, so nothing before the container counts.
work() {
  local teller=''
  if is_decided; then return "${ALREADY_DECIDED}"; fi
  if [ "${GPU_COUNT}" != 0 ]; then prepare_gpus || return "${NO_GPU_DRIVER}"; fi
  export_secrets || return "${NO_SECRET}"
  pull_image || return "${NO_IMAGE}"
  start_container || return
  write_marker "${STARTED}" RUNNING null '' '' ''
  if ! store_marker "${STARTED_OBJECT}" "${STARTED}"; then
    store_marker_at_last "${STARTED_OBJECT}" "${STARTED}" &
    teller=$!
  fi
  while is_container_up; do
    docker wait "${CONTAINER}" >/dev/null 2>&1 || pause 0
  done
  if [ -n "${teller}" ]; then kill "${teller}"; fi
}

# Lets a process of its own do the work, and settles what it ends with. This shell must do nothing but wait while it can
# be signalled: bash 5.2 may run a trap in the midst of expanding `$(...)`, and then cannot go on.
attend_work() {
  local worker code watchers=()
  trap 'SIGNAL=TERM' TERM
  watch_preemption >/dev/null 2>&1 &
  watchers+=($!)
  if [ -n "${LOG_BUCKET}" ]; then watch_log >/dev/null 2>&1 & watchers+=($!); fi
  work &
  worker=$!
  wait "${worker}"
  code=$?
  trap '' TERM
  kill "${watchers[@]}"
  # A signal to us, or the worker's own death, leaves the container without anybody who waits for it.
  if [ -n "${SIGNAL}" ] || ((code > 128)); then
    kill "${worker}" 2>/dev/null
    code=lost
    if [ -e "${EXEC_START}" ] && is_container_up; then
      STOPPED_BY_US=yes
      docker stop -t "${STOP_GRACE}" "${CONTAINER}" >/dev/null 2>&1
    fi
  fi
  settle "${code}"
}

main() {
  trap '' TERM
  mkdir -p "${ROOT}"
  if mkdir "${STATE}" 2>/dev/null; then
    : >"${SETUP_LOG}"
    if [ -n "${STATUS_BUCKET}" ]; then attend_work; return; fi
    # Work whose end nobody could learn is not begun. It stays up so that the console can be read.
    write_marker "${TERMINAL}" FAILED null ConfigFault 'the plan names no status bucket' ''
    announce
  elif [ -e "${TERMINAL}" ]; then
    # A second boot. What the first had to say and could not deliver still counts.
    announce
    deliver
  elif [ -d "${STATE}" ]; then
    # The container must not start twice.
    finish FAILED null Rebooted
  else
    # Without a place for its files there is nothing it could do or tell; the plane's boot deadline finds it.
    say "no folder ${STATE}"
  fi
}

main
