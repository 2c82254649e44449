"""The way of a click, room by room: from an address to the job that does it, and back to what a person sees.

urls        an address becomes a view
views       pages and fragments: rows fetched through `access`, questions asked of the runtime's records
forms       what a person may write, checked
access      each kind of row fetched through one function that checks rights
actions     each write that a page, the API and a command share
repairs     what support does to a run that is stuck, or whose numbers are off
admin       the admin site, for support, on the `admin_site` that groups it
audit       who did what
queue       what an action asks for becomes a message
jobs        the workers' actors: an id in, one call
presence    a worker process is known from its first moment
readiness   what a worker's first message would wait for
clock       what happens by itself: schedules, retention, upkeep
alerts      people are told: rules, what they found, channels, messages
environment whether the install has what it needs, each part with what to do
runs        a run from its begin to its end, with the database as the runtime's ledger and outbox
tracking    where a run's records lie and who may ask for them: stores, buckets, exports, fact tables
signing_in  by name and password, with a limit of attempts
people      members, invitations, roles, sessions: changed in one place
tokens      of the API: made, shown once, revoked
workspaces  made and changed in one place
projects    a workspace's folder as the runtime's project, with its secrets
workers     life and death of processes
stopping    what a signal does to one
durations   lengths of time as people read them
headers     what every answer says to browsers and caches, and how large a request may be
redaction   logs and error reports without secrets
checks      settings that cannot be used, told before anything starts
manual      docs/*.md as pages
models      the tables, one noun a file
management  the commands, which `command_line` finds from anywhere
serving     what `bin/up` and `ondatra up` start on one machine
demo        data and a destination to try it with
"""
