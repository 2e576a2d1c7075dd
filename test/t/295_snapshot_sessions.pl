# What the copy's connection must live through (short time limits of the source, an administrator who ends it), what dates and times
# come as by SELECT, and tables without a key: their equal rows, and a worker's memory.
# cells: mariadb-15 mysql-18
# takes: 23 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.slow (id int primary key, v int)', 'insert into shop.slow values ' . join(', ', map { "($_, $_)" } 1 .. 90),
	'create table shop.bare (v int)', 'insert into shop.bare values ' . join(', ', map { "($_), (7)" } 1 .. 45));
$source->sql("grant lock tables on shop.* to 'repl'\@'%'") if $source->is_mysql;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, tables => '{shop.slow,shop.bare}',
	options => '{"snapshot_chunk_rows": 30, "max_rows_per_second": 12, "snapshot_workers": 2}')->setup;

# ---- S11: between two chunks the connection is idle for longer than the source would let others be
my @limits = ('wait_timeout', 'interactive_timeout', 'net_read_timeout', 'net_write_timeout', $source->is_mariadb ? ('idle_transaction_timeout', 'idle_readonly_transaction_timeout') : ());
$source->sql(map { "set global $_ = 1" } @limits);
delete $source->{dbh};
$pipeline->start;
$pipeline->wait_for_tables(90);
$source->sql(map { "set global $_ = default" } @limits);
delete $source->{dbh};
$pipeline->wait_for_catchup;
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state = 'streaming'}), '2', 'S11: wait_timeout = 1: slow copies come to their end') or diag($pipeline->describe);
is($pipeline->status("failures || coalesce(last_error, '')"), '0', 'S11: without an error');
unlike($postgres->log_text, qr/lost connection/, 'S11: and without a lost connection');
$pipeline->is_same('S11: the copy is whole', 'slow');
is($postgres->psql('select count(*), sum(v) from shop.bare'), join('|', @{ ($source->query_rows('select count(*), sum(v) from shop.bare'))[0] }), 'S11: without a key too');

# somebody ends it: the copy comes back by itself
$pipeline->stop->drop->drop_target;
$pipeline->{tables} = '{shop.slow}';
$pipeline->{options} = '{"snapshot_chunk_rows": 10, "max_rows_per_second": 20, "snapshot_workers": 1}';
$pipeline->start;
ok($postgres->poll('select max(chunks) between 1 and 6 from pg_stat_cdc_snapshot', 't', 30), 'a table is being copied');
my @ours = map { $_->[0] } $source->query_rows(q{select id from information_schema.processlist where user = 'repl' and command not like 'Binlog%'});
ok(scalar(@ours), 'S11: the connection is there');
$source->sql(map { "kill $_" } @ours);
$pipeline->wait_for_state('streaming', 90)->wait_for_tables->wait_for_catchup;
$pipeline->is_same('S11: its connection was ended in the middle: the copy is whole', 'slow');
is($pipeline->table_status('slow', 'rows_copied'), 90, 'S11: and no chunk was copied twice');

# ---- S12: dates and times that no client library likes, by SELECT and by the log
$pipeline->stop->drop->drop_target;
my $columns = q{id int primary key, t time(6), d date, dt datetime(6), ts timestamp(3) null, y year, s varchar(20)};
my @odd = (
	q{'-838:59:59', '0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', 0, ''},
	q{'838:59:59', '2000-00-10', '2000-10-00 10:11:12.5', '1970-01-01 00:00:01', 1901, '0'},
	q{'-00:00:00.25', '0000-01-01', '0000-01-01 00:00:00', '2038-01-19 03:14:07.999', 2155, '0000-00-00'},
	q{'-00:00:01', '0001-01-01', '0001-01-01 00:00:00.000001', '2024-02-29 12:00:00.001', 2000, '-'},
	q{'00:00:00', '9999-12-31', '9999-12-31 23:59:59.999999', '1999-12-31 23:59:59.999', 1970, ' '},
	q{'24:00:00.000001', '1969-12-31', '1969-12-31 23:59:59.999999', null, null, null},
	q{null, '1582-10-10', '1582-10-10 12:00:00', '2026-03-29 02:30:00', 69, 'x'},
);
$source->sql("create table shop.copied ($columns) default charset utf8mb4", "create table shop.followed like shop.copied");
my $dbh = $source->connect;
$dbh->do(q{set sql_mode = '', time_zone = '+00:00'});
my $number = 0;
$dbh->do('insert into shop.copied values (' . ++$number . ", $_)") for @odd;
$pipeline->{tables} = '{shop.copied,shop.followed}';
$pipeline->{options} = '{"zero_date": "null"}';
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$dbh->do('insert into shop.followed select * from shop.copied');
$pipeline->wait_for_catchup;
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state = 'streaming'}), '2', 'S12: no odd date or time stops a table') or diag($pipeline->describe);
is($postgres->psql('select count(*) from shop.copied'), scalar(@odd), 'S12: all rows were copied');
is($postgres->psql('(table shop.copied except table shop.followed) union all (table shop.followed except table shop.copied)'), '', 'S12: by SELECT they are what they are by the log');
is($postgres->psql(q{select string_agg(coalesce(t::text, 'null'), ' ' order by id) from shop.copied}), '-838:59:59 838:59:59 -00:00:00.25 -00:00:01 00:00:00 24:00:00.000001 null', 'S12: times with their sign and fraction');
is($postgres->psql(q{select d is null, dt is null, ts is null, y, s = '' from shop.copied where id = 1}), 't|t|t|0|t', 'S12: zero dates as the policy says, an empty text stays one');
is($postgres->psql(q{select string_agg(d || ' ' || dt, ', ' order by id) from shop.copied where id between 4 and 6}),
	'0001-01-01 0001-01-01 00:00:00.000001, 9999-12-31 9999-12-31 23:59:59.999999, 1969-12-31 1969-12-31 23:59:59.999999', 'S12: the ends of the calendar');

# ---- S3: N equal rows without a key, of which exactly as many go as at the source; larger than the memory of a worker
$pipeline->stop->drop->drop_target;
$source->sql('create table shop.twins (v int, w longtext)', 'insert into shop.twins values ' . join(', ', (q{(1, repeat('x', 40000))}) x 250));
$source->sql('insert into shop.twins select v + 1, w from shop.twins') for 1 .. 3;    # 2,000 rows, 80 MB: 250 of 1, 750 of 2 ...
$pipeline->{tables} = '{shop.twins}';
$pipeline->{options} = '{"max_rows_per_second": 1500}';
$pipeline->start;
my $peak = 0;
poll_until(sub {
	for my $pid (split(/\n/, $postgres->psql(q{select pid from pg_stat_activity where backend_type = 'cdc_bridge snapshot worker'})))
	{
		my ($now) = slurp("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;
		$peak = $now if ($now // 0) > $peak;
	}
	return $pipeline->table_status('twins', 'state') eq 'streaming';
}, 60) or diag($pipeline->describe);
my $counts = sub { return join(' ', map { "$_->[0]:$_->[1]" } $source->query_rows('select v, count(*) from shop.twins group by v order by v')); };
my $here = q{select string_agg(v || ':' || n, ' ' order by v) from (select v, count(*) n from shop.twins group by v) x};
is($postgres->psql($here), $counts->(), 'S3: equal rows are copied, as many as there are');
cmp_ok($peak, '>', 1000, 'the memory was looked at');
cmp_ok($peak, '<', 75_000, "S3: not the whole table of 80 MB in memory ($peak kB)");
$source->sql('delete from shop.twins where v = 2 limit 7', 'update shop.twins set v = 9 where v = 3 limit 5', 'insert into shop.twins select v, w from shop.twins where v = 1 limit 3');
$pipeline->wait_for_catchup;
is($postgres->psql($here), $counts->(), 'S3: of equal rows exactly as many are changed as at the source');
is($pipeline->table_status('twins', 'conflicts'), '0', 'S3: and each was found');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
