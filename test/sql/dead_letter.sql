-- Requests that concern dead letters, and who may ask and see.
CREATE EXTENSION cdc_bridge;
CREATE ROLE regress_letters_ann LOGIN;
CREATE ROLE regress_letters_watcher IN ROLE pg_monitor;
CREATE SERVER letters_shop FOREIGN DATA WRAPPER cdc_mysql OPTIONS (host 'db1');
CREATE USER MAPPING FOR PUBLIC SERVER letters_shop OPTIONS (username 'repl', password 'secret');
CREATE SCHEMA letters_target AUTHORIZATION regress_letters_ann;
GRANT USAGE ON FOREIGN SERVER letters_shop TO regress_letters_ann;
GRANT EXECUTE ON FUNCTION cdc_create_pipeline TO regress_letters_ann;
SET ROLE regress_letters_ann;
SELECT cdc_create_pipeline('shop_in', 'letters_shop', '{shop.*}', target_schema => 'letters_target', options => '{"on_error": "dead_letter"}');
-- the right to call is needed
SELECT cdc_replay_dead_letters('shop_in');
SELECT cdc_discard_dead_letters('shop_in');
RESET ROLE;
GRANT EXECUTE ON FUNCTION cdc_replay_dead_letters, cdc_discard_dead_letters TO regress_letters_ann, regress_letters_watcher;

-- arguments
SET ROLE regress_letters_ann;
SELECT cdc_replay_dead_letters(NULL);
SELECT cdc_replay_dead_letters('nothing');
SELECT cdc_replay_dead_letters('shop_in', tables => '{}');
SELECT cdc_replay_dead_letters('shop_in', tables => '{orders}');
SELECT cdc_replay_dead_letters('shop_in', tables => '{!shop.orders}');
SELECT cdc_replay_dead_letters('shop_in', ids => '{}');
SELECT cdc_replay_dead_letters('shop_in', ids => '{1,NULL}');
SELECT cdc_replay_dead_letters('shop_in', ids => (SELECT array_agg(n) FROM generate_series(1::bigint, 10001) n));

-- a request waits for the worker; ROLLBACK undoes it
BEGIN;
SELECT cdc_replay_dead_letters('shop_in') IS NOT NULL AS asked;
ROLLBACK;
SELECT count(*) FROM cdc_dead_letter_requests;
SELECT cdc_replay_dead_letters('shop_in', tables => '{shop.orders,shop.log_*}') > 0 AS asked;
SELECT cdc_discard_dead_letters('shop_in', ids => '{5,7}', reason => 'known') > 0 AS asked;
SELECT cdc_discard_dead_letters('shop_in') > 0 AS asked;
SELECT pipeline, kind, tables, ids, reason, state, settled, failed, left_alone, requested_by, started_at, finished_at
FROM cdc_dead_letter_requests ORDER BY request;
SELECT count(*) FROM cdc_bridge.dead_letter_request;
RESET ROLE;

-- letters are for the owner; requests for whoever may see the pipeline
INSERT INTO cdc_bridge.dead_letter (pipeline_id, dead_letter_id, table_id, source_schema, source_table, state, operation, after, error, error_sqlstate, created_at, attempts, last_attempt_at)
SELECT pipeline_id, 1, 1, 'shop', 'orders', 'waiting', 'snapshot', '{"id": "1"}', 'it does not fit', '23514', now(), 1, now() FROM pg_stat_cdc_pipeline;
SET ROLE regress_letters_ann;
SELECT source_schema, source_table, state, file, action, operation, before, after, error, error_sqlstate, changed_at, attempts, settled_at, reason, request FROM cdc_dead_letters;
SET ROLE regress_letters_watcher;
SELECT count(*) FROM cdc_dead_letters;
SELECT count(*) FROM cdc_dead_letter_requests;
SELECT cdc_replay_dead_letters('shop_in');
RESET ROLE;

-- they go with their pipeline
SELECT cdc_drop_pipeline('shop_in');
SELECT (SELECT count(*) FROM cdc_bridge.dead_letter) AS letters, (SELECT count(*) FROM cdc_bridge.dead_letter_request) AS requests;
DROP EXTENSION cdc_bridge CASCADE;
DROP SCHEMA letters_target;
DROP OWNED BY regress_letters_ann;
DROP ROLE regress_letters_ann;
DROP ROLE regress_letters_watcher;
