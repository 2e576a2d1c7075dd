# Trouble of many kinds in many tables at once never stops the pipeline, nor the other tables: with dead letters what is a row's own
# fault is kept, what is the table's stops it. And a flood of bad changes leaves the worker small and the stream alive.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;
use Time::HiRes qw(time);

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { heartbeat_interval => 300 })->setup;

# table: [ what happens to the target, a change that meets it, whose fault that is, SQLSTATE ]
my %trouble = (
	checked => [ 'alter table shop.checked add check (v < 100)', 'insert into shop.checked values (9, 900, null)', 'row', '23514' ],
	lost_column => [ 'alter table shop.lost_column drop column v', 'insert into shop.lost_column values (9, 9, null)', 'table', '42804' ],
	no_right => [ 'alter table shop.no_right owner to stranger', 'insert into shop.no_right values (9, 9, null)', 'table', '42501' ],
	dropped => [ 'drop table shop.dropped', 'insert into shop.dropped values (9, 9, null)', 'table', '55000|42P01' ],
	raised => [ q{create function shop.raise() returns trigger language plpgsql as $$ begin if new.v = 9 then raise 'no'; end if; return new; end $$;
		create trigger t before insert on shop.raised for each row execute function shop.raise(); alter table shop.raised enable always trigger t},
		'insert into shop.raised values (9, 9, null)', 'row', 'P0001' ],
	narrow => [ 'alter table shop.narrow alter t type varchar(9)', q{insert into shop.narrow values (9, 9, 'far too long')}, 'row', '22001' ],
	nul => [ 'select 1', q{insert into shop.nul values (9, 9, concat('a', char(0), 'b'))}, 'row', '22021' ],
	secured => [ 'alter table shop.secured enable row level security; alter table shop.secured force row level security', 'insert into shop.secured values (9, 9, null)', 'table', '0A000|42501|55000' ],
	twice => [ 'alter table shop.twice add unique (v)', 'insert into shop.twice values (9, 1, null)', 'row', '23505' ],
	odd_type => [ 'alter table shop.odd_type alter v type date using null', 'insert into shop.odd_type values (9, 9, null)', 'table', '42804' ],
	in_domain => [ 'create domain shop.small as int check (value < 100); alter table shop.in_domain alter v type shop.small', 'insert into shop.in_domain values (9, 900, null)', 'row', '23514' ],
	not_null => [ 'alter table shop.not_null alter t set not null', 'insert into shop.not_null values (9, 9, null)', 'row', '23502' ],
);
my @tables = sort keys %trouble;
$source->sql('create database shop', q{set sql_mode = ''});
$postgres->psql('create role app login; create role stranger; grant usage on foreign server shop to app');
my %mapping = (username => $source->user, password => $source->password);
$postgres->psql("create user mapping for app server shop options (username '$mapping{username}', password '$mapping{password}')");

for my $on_error ('stop_table', 'dead_letter')
{
	$source->sql((map { ("drop table if exists shop.$_", "create table shop.$_ (id int primary key, v int, t text)", "insert into shop.$_ values (1, 1, 'x')") } @tables, 'fine'));
	$postgres->psql('create schema shop authorization app; grant create on database postgres to app');
	$pipeline->{options} = qq({"on_error": "$on_error"});
	(my $create = $pipeline->start_statement) =~ s/cdc_start_pipeline/cdc_create_pipeline/;
	$postgres->psql("$create; select cdc_alter_pipeline('shop_in', owner => 'app'); select cdc_start_pipeline('shop_in')");
	$pipeline->{created} = 1;
	$pipeline->wait_for_state('streaming')->wait_for_tables;

	$postgres->psql("set client_min_messages = warning; $trouble{$_}[0]") for @tables;
	my $pid = $pipeline->status('ingest_pid');
	# each table's trouble in a transaction with all the others, and with what is well
	$source->sql('begin', 'insert into shop.fine values (2, 2, null)', (map { ("update shop.$_ set t = 'before' where id = 1", $trouble{$_}[1], "update shop.$_ set t = 'after' where id = 1") } @tables),
		'insert into shop.fine values (3, 3, null)', 'commit', 'insert into shop.fine values (4, 4, null)');
	$pipeline->wait_for_catchup;
	$pipeline->is_same("$on_error: what is well goes on", 'fine');
	is($pipeline->state, 'streaming', "$on_error: so does the pipeline");
	is($pipeline->status('ingest_pid'), $pid, "$on_error: no worker ended");
	for my $table (@tables)
	{
		my ($change, $meets, $fault, $sqlstate) = @{ $trouble{$table} };
		if ($on_error eq 'dead_letter' && $fault eq 'row')
		{
			like($postgres->psql("select state, (select string_agg(error_sqlstate, ',') from cdc_dead_letters where source_table = '$table') from pg_stat_cdc_table where source_table = '$table'"),
				qr/^streaming\|(?:$sqlstate)$/, "$on_error: $table: the row is kept, the table goes on") or diag($pipeline->table_status($table, 'last_error'));
			is($postgres->psql("select t from shop.$table where id = 1"), 'after', "$on_error: $table: what is around it is applied");
		}
		else
		{
			like($pipeline->table_status($table, "state || '|' || last_error_sqlstate"), qr/^stopped\|(?:$sqlstate)$/, "$on_error: $table: it stops alone") or diag($pipeline->table_status($table, 'last_error'));
		}
	}
	last if $on_error eq 'dead_letter';
	$pipeline->stop->drop->drop_target;
}

# ---- a flood: every change of a table fails, in one large transaction and in many small ones
sub memory { my ($kb) = slurp("/proc/$_[0]/status") =~ /^RssAnon:\s+(\d+) kB/m; return $kb / 1024; }
my $pid = $pipeline->status('ingest_pid');
my $bad = "insert into shop.checked select 100 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n, 500, 'flood' from shop.n a, shop.n b, shop.n c, shop.n d";
$source->sql('create table shop.n (n int primary key)', 'insert into shop.n values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)');
$source->sql("$bad where d.n < 1");    # what it costs once
$pipeline->wait_for_catchup;
my $before = memory($pid);
my $began = time;
$source->sql('delete from shop.checked where id >= 100', $bad, 'insert into shop.fine values (5, 5, null)');
$source->sql(map { ("update shop.checked set v = 600 + $_ where id = " . (100 + $_)) } 1 .. 300);
$source->sql('insert into shop.fine values (6, 6, null)');
$pipeline->wait_for_catchup(90);
my $count = $postgres->psql(q{select count(*) from cdc_dead_letters where source_table = 'checked'});
diag(sprintf('%d letters in %.1f s', $count, time - $began));
is($postgres->psql(q{select count(*) from cdc_dead_letters where source_table = 'checked' and operation = 'insert' and after->>'t' = 'flood'}), '11000', 'each change of the flood is kept once');
is($postgres->psql(q{select count(*) from cdc_dead_letters where source_table = 'checked' and operation = 'update'}), '300', 'in small transactions too');
is($postgres->psql(q{select count(*) from cdc_dead_letters where source_table = 'checked' and operation = 'insert' and state = 'superseded'}), '1000', 'deletes of rows that never came settle their letters');
is($pipeline->status('ingest_pid'), $pid, 'by the same worker');
cmp_ok(memory($pid) - $before, '<', 40, 'whose memory does not grow');
$pipeline->is_same('other tables go on', 'fine');
my @lines = $postgres->log_text =~ /(became a dead letter: |more changes of pipeline "shop_in" became dead letters)/g;
cmp_ok(scalar(@lines), '<', 1500, 'the server log is spared');
like($postgres->log_text, qr/\d{4} more changes of pipeline "shop_in" became dead letters/, 'and has their number');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
