# The history of what statements did to shipped tables: each is there once, through kills and with changes that are shipped once.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"schema_changes_exclude": ["alter_default"]}')->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.t (id int primary key, v int);
create table shop.u (id int primary key, v int);
create function shop.statements(first int, last int) returns void language plpgsql as $$
begin
	for i in first .. last loop
		execute format('alter table shop.t add column c%s int', i);
		execute format('alter table shop.u alter column v set default %s', i);
		execute format('insert into shop.t (id) values (%s)', i);
	end loop;
end $$;
SQL
$export->start->wait_for_state('streaming');

# every statement is in the history once, in order; and each of those that are shipped is so once
sub is_once
{
	my ($n, $name) = @_;
	is($postgres->psql("select count(*), count(distinct (file, \"offset\")), count(*) filter (where source_table = 't' and result = 'applied'), count(*) filter (where source_table = 'u' and result = 'ignored') from cdc_schema_history"),
		join('|', 2 * $n, 2 * $n, $n, $n), "$name: each is noted once");
	is($postgres->psql("select count(*) from (select change_no, file, \"offset\", lag(file) over w as f, lag(\"offset\") over w as o from cdc_schema_history window w as (order by change_no)) s where (file, \"offset\") < (f, o)"), '0', "$name: in order");
	is(scalar(grep { $_->{tableChanges} } $export->records), $n, "$name: and what is shipped is so once");
	return;
}

my $n = 0;
for my $victim (qw(worker postmaster worker stopped))
{
	my ($first, $last) = ($n + 1, $n + 20);
	my $pid = $export->status('pid');
	$postgres->psql(join('', map { "select shop.statements($_, $_);\n" } $first .. $last));
	$n = $last;
	if ($victim eq 'worker') { $postgres->kill9_process($pid); }
	elsif ($victim eq 'stopped') { $export->stop->start; }
	else { $postgres->kill9; $postgres->start; }
	$export->wait_for_state('streaming')->wait_for_all;
	is_once($n, $victim);
}

# ---- a worker dies with its rows written, and the sink not flushed
$export->stop;
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"flush_max_ms": 60000, "flush_max_kb": 1048576}')});
$postgres->psql("select shop.statements($_, $_)") for $n + 1 .. $n + 20;
$postgres->psql('do $$ begin for i in 10001 .. 40000 loop insert into shop.u values (i, 1); commit; end loop; end $$');
$export->start;
$postgres->poll('select count(*) > ' . 2 * $n . ' from cdc_schema_history', 't', 30) or die "nothing is written\n" . $export->describe;
$postgres->kill9_process($export->status('pid'));
is(scalar(grep { $_->{tableChanges} } $export->records), $n, 'killed before what they came with is flushed');
$n += 20;
$export->wait_for_state('streaming')->wait_for_all;
is_once($n, 'killed in between');

# ---- a stop is written with its table's, however soon the next worker dies
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"schema_changes": "exception"}')});
$export->wait_for_state('streaming');
$postgres->psql('begin; insert into shop.t (id) values (1000); alter table shop.u alter column v set default 0; alter table shop.t drop column c1; commit');
for my $round (1 .. 2)
{
	$postgres->poll("select count(*) from pg_stat_cdc_export_table where state = 'stopped'", '1', 30) or die "it does not stop\n" . $export->describe;
	$postgres->kill9;
	$postgres->start;
	$export->wait_for_state('streaming')->wait_for_all;
	is($postgres->psql("select string_agg(source_table || ' ' || result, ', ' order by result) from cdc_schema_history where change_no > " . 2 * $n), 'u ignored, t stopped', "round $round: a statement that stops a table, and one before it, are noted once");
}

done_testing();
