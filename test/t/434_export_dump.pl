# What is left of an outgoing pipeline elsewhere: in a dump, in a base backup, after DROP EXTENSION and DROP DATABASE. The pipeline never goes on
# by guess, and no slot stays behind that nobody knows of.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(new_folder poll_until slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "max_wal_senders = 4\n");
my $export = CdcBridge::Export->new(postgres => $postgres)->setup;
my $bin = $postgres->bindir;
my $at = "-h '" . $postgres->host . "' -p " . $postgres->port . ' -U postgres';
$postgres->psql('create schema shop; create table shop.t (id int primary key, v text)');
$export->start->wait_for_state('streaming');
$postgres->psql("insert into shop.t select i, 'before' from generate_series(1, 3) i");
$export->wait_for_all;
my $slot = $export->status('slot_name');

# ---- tools see ordinary tables only

is($postgres->psql(q{select count(*) from pg_class c join pg_am a on a.oid = c.relam where relnamespace = 'cdc_bridge'::regnamespace and relkind = 'r' and amname <> 'heap'}), '0',
	'P50: the extension has ordinary tables only');
my $dump = "$export->{dir}/dump.sql";
is(system("$bin/pg_dump $at -d postgres > '$dump' 2> '$dump.err'"), 0, 'P50: pg_dump takes a database with an outgoing pipeline') or diag(slurp("$dump.err"));
is(slurp("$dump.err"), '', 'P50: and has nothing to say');
like(slurp($dump), qr/^\d+\tshop_out\t/m, 'P50: the dump has the pipeline');
unlike(slurp($dump), qr/\Q$slot\E/, 'P50: and not its slot');

# ---- restored elsewhere: stopped; the sink holds what the first one wrote, and is not gone on with

$postgres->psql("create database restored");
is(system("$bin/psql -XAtq -v ON_ERROR_STOP=1 $at -d restored -f '$dump' > /dev/null 2> '$dump.err'"), 0, 'P50: the dump can be restored') or diag(slurp("$dump.err"));
my $in = sub { my ($sql) = @_; return qx($bin/psql -XAtq $at -d restored -c "$sql" 2>&1) =~ s/\s+\z//r; };
is($in->('select pipeline, state, slot_name from pg_stat_cdc_export'), 'shop_out|stopped|', 'P50: a restored pipeline is stopped and has no slot');
my $lines = sub { return join('', map { slurp($_) } $export->files); };
my $before = $lines->();
$in->("select cdc_start_pipeline('shop_out')");
ok(poll_until(sub { return $in->('select state from pg_stat_cdc_export') eq 'failed' }), 'P50: started, it fails');
is($in->('select last_error_sqlstate from pg_stat_cdc_export'), 'YC001', 'P50: as one whose position is lost');
like($in->('select last_error, last_error_hint from pg_stat_cdc_export'), qr/holds what another pipeline has written.*another name or another sink/, 'P50: it says what is there and what to do');
is($lines->(), $before, 'P50: and writes nothing there');

# ---- with a sink of its own it begins anew: with the rows that are there, and what commits from then on

$in->("select cdc_drop_pipeline('shop_out')");
my $dir = new_folder('restored');
$in->("alter server files options (set directory '$dir')");
$in->("select cdc_start_pipeline('shop_out', sink => 'files', tables => '{shop.*}')");
ok(poll_until(sub { return $in->('select state from pg_stat_cdc_export') eq 'streaming' }), 'P50: with a folder of its own it begins anew');
$in->("insert into shop.t values (100, 'restored')");
is(scalar(() = join('', map { slurp($_) } glob("$dir/shop_out/*")) =~ /"op":"r"/g), 3, 'P50: with the rows that were restored');
ok(poll_until(sub { return scalar(() = join('', map { slurp($_) } glob("$dir/shop_out/*")) =~ /"after":\{"id":100,/g) == 1 }), 'P50: and with what commits from then on');
$postgres->psql("insert into shop.t values (4, 'first database')");
$export->wait_for_all;
$export->is_replayed('shop', 't', 'id', 'P50: the first one is not disturbed');

# ---- DROP DATABASE takes the slot along

my $slots = q{select count(*) from pg_replication_slots where plugin = 'cdc_bridge'};
is($postgres->psql($slots), '2', 'each pipeline has its slot');
$postgres->psql('drop database restored');
is($postgres->psql($slots), '1', 'a database that is dropped leaves no slot behind');

# ---- a base backup has no slots

my $copy = new_folder('backup');
is(system("$bin/pg_basebackup $at -D '$copy/data' -c fast -X stream > /dev/null 2>&1"), 0, 'a base backup is made');
ok(!glob("$copy/data/pg_replslot/*"), 'it has no slot, so that one that comes up from it cannot go on');
like(slurp("$copy/data/PG_VERSION"), qr/^\d/, 'and is whole');

# ---- the extension goes

$postgres->psql('begin; drop extension cdc_bridge cascade; rollback');
$export->wait_for_state('streaming')->wait_for_all;
is($postgres->psql($slots), '1', 'DROP EXTENSION that is rolled back leaves the slot');
$postgres->psql('set client_min_messages = warning; drop extension cdc_bridge cascade');
ok($postgres->poll($slots, '0'), 'DROP EXTENSION takes it along');

done_testing();
